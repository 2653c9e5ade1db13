"""The exported program judges its example as the verifier judges a trial."""

import itertools
import subprocess
from pathlib import Path

import numpy as np
from exports import WARNINGS

from autotune.declaration import Tolerance
from autotune.measure.verify import difference

TEMPLATE = Path(__file__).parents[2] / "autotune" / "export" / "templates" / "main.cu.jinja"
WITHIN = [Tolerance(), Tolerance(absolute=1), Tolerance(0.25, 2, share=0.3), Tolerance(share=0.5),
          Tolerance(absolute=1, nan="ignore"), Tolerance(absolute=1, nan="wrong")]  # fmt: skip
NUMBERS = {
    "std::uint8_t": ("0, 1, 155, 254, 255", np.uint8),
    "std::int32_t": ("-2147483647 - 1, -1, 0, 4, 2147483647", np.int32),
    "std::uint64_t": ("0, 1, 2, 9223372036854775807u, 18446744073709551615u", np.uint64),
    "float": ("-1, 0, 1.5, INFINITY, NAN", np.float32),
}
PROGRAM = """
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <type_traits>
#include <vector>
#include <cstddef>

{functions}

int main() {{
  const Tolerance within[] = {{ {within} }};
{tried}
  std::puts("");
}}
"""
TRIED = """
  {{
    const std::vector<{kind}> numbers = {{ {numbers} }};
    for (const Tolerance& each : within)
      for (const {kind} a : numbers)
        for (const {kind} b : numbers)
          std::printf("%d", !differing(std::vector<{kind}>{{a, 7, 7}}, {{b, 7, 8}}, each, [](auto x) {{ return x; }}));
  }}
"""


def test_it_takes_what_the_verifier_takes(tmp_path: Path) -> None:
    text = TEMPLATE.read_text()
    functions = text[text.index("// The family's tolerance of one output") : text.index("}  // namespace")]
    within = ", ".join(
        f"{{{each.relative}, {each.absolute}, {each.share}, Nan::{each.nan}}}" for each in WITHIN
    )
    tried = "".join(TRIED.format(kind=kind, numbers=text) for kind, (text, _) in NUMBERS.items())
    source = tmp_path / "tolerance.cpp"
    source.write_text(PROGRAM.format(functions=functions, within=within, tried=tried))
    subprocess.run(["g++", *WARNINGS, source, "-o", tmp_path / "it"], check=True)
    said = subprocess.run([tmp_path / "it"], check=True, capture_output=True, text=True).stdout.strip()
    expected = ""
    for text, kind in NUMBERS.values():
        values = [
            eval(each, {"INFINITY": np.inf, "NAN": np.nan}) for each in text.replace("u", "").split(",")
        ]
        for each, a, b in itertools.product(WITHIN, values, values):
            reason = difference("y", np.array([a, 7, 7], kind), np.array([b, 7, 8], kind), {"y": each})
            expected += str(int(not reason))
    assert said == expected
    assert 0.1 < expected.count("1") / len(expected) < 0.9
