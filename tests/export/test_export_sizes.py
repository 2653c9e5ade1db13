"""Sizes that an export computes: those that read options, for each value of them."""

import subprocess
from pathlib import Path

from export_family import write_policies, write_shifted
from exports import WARNINGS, exporting

from autotune.cli.commands import main
from autotune.declaration import family as families

PROGRAM = """
#include <cstdio>
#include "shifted_configurations.cpp"

int main() {
  using namespace tuned::shifted;
  Problem problem;
  problem.count = 10;
  problem.size = 7;
  for (const Sign sign : {Sign::plus, Sign::minus}) {
    problem.sign = sign;
    std::printf("%d %d ", static_cast<int>(touched_elements(problem)), static_cast<int>(values(problem).twice));
  }
}
"""


def test_a_size_that_reads_an_option_has_its_value_for_each(tmp_path: Path) -> None:
    folder = write_shifted(tmp_path / "shifted").folder
    text = (folder / "family.yaml").read_text()
    for was, now in (
        ('one: {value: "1"}', "one: {value: \"3 if sign == 'plus' else count + 5\"}"),
        ('value: "2 * count"}', "value: \"(2 if sign == 'plus' else 4) * count\"}"),
    ):
        assert was in text
        text = text.replace(was, now)
    (folder / "family.yaml").write_text(text)
    python = (folder / "family.py").read_text()
    rest = "[0] * (2 if options['sign'] == 'plus' else len(moved) + 4)"
    (folder / "family.py").write_text(python.replace("[len(moved)]", f"[len(moved)] + {rest}"))
    write_policies(families.load_family(folder), tmp_path / "policies")
    out = tmp_path / "out"
    assert main(exporting(folder, tmp_path / "policies", out)) == 0
    (tmp_path / "main.cpp").write_text(PROGRAM)
    command = ["g++", *WARNINGS, "-O0", f"-I{out}", str(tmp_path / "main.cpp"), "-o", str(tmp_path / "main")]
    subprocess.run(command, check=True)
    assert subprocess.run([tmp_path / "main"], stdout=subprocess.PIPE, check=True).stdout == b"3 20 15 40 "
