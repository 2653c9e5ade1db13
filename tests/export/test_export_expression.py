"""What an expression gives in C++ is what it gives in Python, with the same names left open or folded."""

import math
import random
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from autotune.declaration.expression import Expression, Value
from autotune.errors import FamilyError
from autotune.export.cpp_expression import Kind, translate

CPP = Path(__file__).parents[2] / "autotune" / "export" / "cpp"
FREE: Mapping[str, tuple[str, Kind]] = {"n": ("v.n", "whole"), "m": ("v.m", "whole"), "f": ("v.f", "real")}
BOUND: Mapping[str, Value] = {"tile": 4, "mode": "fast", "block": 64, "half": 0.5}


@pytest.mark.parametrize(
    ("text", "cpp"),
    [
        ("ceil_div(n, 16 * tile)", "ceil_div(v.n, 64)"),
        ("n * m * (n + 1) - (m - n)", "v.n * v.m * (v.n + 1) - (v.m - v.n)"),
        ("n // 4 if mode == 'fast' else m", "floor_div(v.n, 4)"),
        ("mode in ('fast', 'exact') and n < m", "v.n < v.m"),
        ("mode == 'slow' and n < m", "false"),
        ("mode == 'fast' or n < m", "true"),
        ("n if n < m else m", "(v.n < v.m) ? v.n : v.m"),
        ("1 < n <= tile", "(1 < v.n) && (v.n <= 4)"),
        ("n in (1, 2, tile)", "(v.n == 1) || (v.n == 2) || (v.n == 4)"),
        ("not n == m", "!(v.n == v.m)"),
        ("-(n + m) % 3", "floor_mod(-(v.n + v.m), 3)"),
        ("max(n, m, 3) / 2", "divide(larger(larger(v.n, v.m), 3), 2)"),
        ("5000000000 * n", "Number{5000000000} * v.n"),
        ("block * 4 if mode == 'slow' else 0", "0"),
    ],
)  # fmt: skip
def test_it_reads_as_one_would_write_it(text: str, cpp: str) -> None:
    assert translate(Expression(text), BOUND, FREE).text == cpp


@pytest.mark.parametrize("text", ["n == 'fast'", "n or 3", "m + (n and 1)", "n < mode"])
def test_what_cpp_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(FamilyError, match="has no C\\+\\+ form"):
        translate(Expression(text), BOUND, FREE)


def drawn(generator: random.Random, depth: int) -> str:
    """A number: any of what expressions may hold."""
    if depth == 0:
        return generator.choice(["n", "m", "f", "tile", "block", "half", "0", "3", "17", "2.5"])
    a, b = (drawn(generator, depth - 1) for _ in range(2))
    kind = generator.randrange(9)
    if kind < 4:
        return f"({a} {generator.choice(['+', '-', '*', '//', '%', '/'])} {b})"
    if kind == 4:
        return f"({a} if {truth(generator, depth - 1)} else {b})"
    if kind == 5:
        return f"{generator.choice(['ceil_div', 'round_up', 'min', 'max'])}({a}, {b})"
    return generator.choice(
        [f"-{a}", f"abs({a})", f"sqrt(abs({a}))", "bit_length(n + m)", f"log2(1 + abs({a}))"]
    )


def truth(generator: random.Random, depth: int) -> str:
    a, b = (drawn(generator, depth) for _ in range(2))
    compared = f"{a} {generator.choice(['<', '<=', '==', '!=', '>', '>='])} {b}"
    listed = f"{a} {generator.choice(['in', 'not in'])} (0, 3, {b})"
    named = generator.choice(["mode == 'fast'", "mode in ('slow', 'exact')"])
    joined = generator.choice(["and", "or"])
    return generator.choice([compared, listed, f"({compared}) {joined} ({named})", f"not ({compared})"])


def test_random_expressions_give_what_python_gives(tmp_path: Path) -> None:
    generator = random.Random(20261)
    texts = [drawn(generator, generator.randrange(1, 4)) for _ in range(150)]
    values = [(n, m, f) for n in (0, 1, 7, 1000) for m in (-3, 64) for f in (0.25, -2.0)]
    lines = "".join(
        f"  print([&] {{ return static_cast<double>({translate(Expression(text), BOUND, FREE).text}); }});\n"
        for text in texts
    )
    shutil.copytree(CPP, tmp_path / "tuned")
    (tmp_path / "main.cpp").write_text(
        '#include <cstdio>\n#include "tuned/arithmetic.h"\nusing namespace tuned;\n'
        "struct Values { Number n, m; double f; };\n"
        "template <class F> void print(F f) {\n"
        '  try { std::printf("%a\\n", f()); } catch (const std::domain_error&) { std::puts("none"); }\n}\n'
        f"static void all([[maybe_unused]] Values v) {{\n{lines}}}\n"
        "int main() {\n" + "".join(f"  all({{{n}, {m}, {f}}});\n" for n, m, f in values) + "}\n"
    )
    command = ["g++", "-std=c++17", "-O0", "-I.", "-o", "main", "main.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)
    found = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout.split()
    assert len(found) == len(texts) * len(values)
    answers = iter(found)
    compared = 0
    for n, m, f in values:
        for text in texts:
            answer = next(answers)
            try:
                expected = float(Expression(text).evaluate({**BOUND, "n": n, "m": m, "f": f}))
            except FamilyError:
                assert answer == "none", text
                continue
            got = float.fromhex(answer)
            assert got == expected or math.isclose(got, expected, rel_tol=1e-14), f"{text} at {n}, {m}, {f}"
            compared += 1
    assert compared > 1000
