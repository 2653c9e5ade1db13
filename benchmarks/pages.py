"""Writes the figures and tables of README.md and docs/ from what is in benchmarks/results.

    python benchmarks/pages.py [--check] [PAGE...]

A page has queries in comments, and a mark after each number that a query gives:

    <!-- figures
    peers = table("allpairs-h200-peers.csv")
    value(peers, "median_ms", workload="wide", what="autotune: tuned")
    -->

    The winner takes 0.380<!--=--> ms.

    <!-- figures: table("limits.json")["bytes_per_s"] / 1e12 -->

    A copy reads 3.94<!--=--> TB/s.

A query is Python, with the functions of queries.py. Its lines that are expressions give a number, or a list of
numbers; in order they are those of the marks up to the next query. A number is written as precisely as the page has it,
and left where that is right: the digits after the point, the commas and the form of a power of ten are the page's.
A table that a script of this folder makes is between

    <!-- table: SCRIPT NAME -->
    <!-- /table -->

and is ``tables()[NAME]`` of that script. With ``--check`` nothing is written, and the status is 1 where a page would
change.
"""

import argparse
import ast
import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any

import queries

__all__ = ["MARK", "QUERY", "TABLE", "main", "pages", "printed", "rewritten", "values"]

ROOT = Path(__file__).parents[1]
QUERY = re.compile(r"^<!-- figures[:\n](.*?)-->$", re.MULTILINE | re.DOTALL)
MARK = "<!--=-->"
TABLE = re.compile(r"^<!-- table: (\w+) (\S+) -->$.*?^<!-- /table -->$", re.MULTILINE | re.DOTALL)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TO_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NUMBER = re.compile(r"([\d,]*\.?\d+)(?:(e)(-?\d+)|(·10)([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+))?$")


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def values(query: str) -> list[float]:
    """What the expressions of a query give."""
    names = dict(vars(queries))
    found: list[float] = []
    for statement in ast.parse(query).body:
        if isinstance(statement, ast.Expr):
            given = eval(compile(ast.Expression(statement.value), "query", "eval"), names)
            found += _flat(given)
        else:
            exec(compile(ast.Module([statement], []), "query", "exec"), names)
    return found


def _flat(given: Any) -> Iterator[float]:
    if isinstance(given, Real):
        yield float(given)
    else:
        for one in given:
            yield from _flat(one)


def printed(number: str, value: float) -> str:
    """``value`` as precisely as the page has ``number``, which stays where it is right."""
    match = _NUMBER.fullmatch(number)
    assert match, f"{number} is no number"
    mantissa = match[1]
    exponent = int((match[3] or match[5] or "0").translate(_SUPERSCRIPTS))
    digits = len(mantissa.partition(".")[2])
    told = float(mantissa.replace(",", "")) * 10.0**exponent
    if abs(told - value) <= 0.501 * 10.0 ** (exponent - digits):
        return number
    if not (match[2] or match[4]):
        return f"{value:,.{digits}f}" if "," in mantissa or abs(value) >= 10_000 else f"{value:.{digits}f}"
    mantissa, _, exponent_text = f"{value:.{digits}e}".partition("e")
    power = str(int(exponent_text))
    return f"{mantissa}e{power}" if match[2] else f"{mantissa}·10{power.translate(_TO_SUPERSCRIPTS)}"


def rewritten(text: str) -> str:
    """A page with the figures that its queries give, and its tables. Raises ValueError where a query has not as many
    figures as are marked."""
    text = TABLE.sub(_made, text)
    queries = list(QUERY.finditer(text))
    ends = [query.end() for query in queries]
    begins = [query.start() for query in queries]
    filled = _filled(text[: begins[0] if begins else len(text)], "")
    for query, end, begin in zip(queries, ends, [*begins, len(text)][1:], strict=True):
        filled += query[0] + _filled(text[end:begin], query[1].strip())
    return filled


def _made(place: re.Match[str]) -> str:
    script, name = place.groups()
    return f"<!-- table: {script} {name} -->\n\n{_tables(script)[name]}\n\n<!-- /table -->"


@cache
def _tables(script: str) -> dict[str, str]:
    made: dict[str, str] = importlib.import_module(script).tables()
    return made


def _filled(text: str, query: str) -> str:
    pieces = text.split(MARK)
    found = values(query)
    if len(found) != len(pieces) - 1:
        raise ValueError(f"{len(found)} values for {len(pieces) - 1} marks:\n{query or text}")
    return MARK.join([*(map(_written, pieces, found)), pieces[-1]])


def _written(piece: str, value: float) -> str:
    """A piece of the page up to a mark, with the number at its end written as ``value``."""
    match = _NUMBER.search(piece)
    if not match:
        raise ValueError(f"a mark without a number: {piece[-60:]}")
    return piece[: match.start()] + printed(match[0], value)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", type=Path, default=pages(), metavar="PAGE")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 where a page would change"
    )
    options = parser.parse_args(arguments)
    changed = False
    for page in options.pages:
        before = page.read_text(encoding="utf-8")
        after = rewritten(before)
        changed |= before != after
        print(
            "".join(unified_diff(before.splitlines(True), after.splitlines(True), str(page), "made", n=0)),
            end="",
        )
        if before != after and not options.check:
            page.write_text(after, encoding="utf-8")
    return int(changed and options.check)


if __name__ == "__main__":
    sys.exit(main())
