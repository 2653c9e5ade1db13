"""Families exported for tests: the shipped ones, and the one of export_family."""

from dataclasses import dataclass
from pathlib import Path

import yaml
from export_family import write_policies, write_shifted

from autotune.cli.commands import main
from autotune.declaration import family as families
from autotune.declaration import yamlfile
from autotune.declaration.family import Family
from autotune.declaration.space import PolicyValue
from autotune.errors import PolicyFileError
from autotune.files import find_bundled
from autotune.layout.digest import layouts_digest

WARNINGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"]
C_WARNINGS = ["-std=c99", *WARNINGS[1:]]


@dataclass(frozen=True)
class Exported:
    family: Family
    policies: Path
    folder: Path
    device: str  # as the policy file names it

    @property
    def name(self) -> str:
        return self.family.name


def exporting(
    family: str | Path, policies: Path, out: Path, *more: str, device: str = "fake-gpu"
) -> list[str]:
    """The command."""
    given = ["--device", device, "--policies", str(policies), "-o", str(out)]
    return ["export", str(family), *given, *more]


def shipped(name: str, workload: str, root: Path, **chosen: PolicyValue) -> Exported:
    """The export of the shipped policy file, taken for one that was measured with the sources of now; ``workload`` was
    won by control with the policies in ``chosen`` where there are any."""
    family = families.load_family(name)
    content = yamlfile.read(find_bundled("policies") / name / "nvidia-h200.yaml", PolicyFileError)
    for item in content["entries"].values():
        item["source_digest"], item["layouts_digest"] = family.source_digest, layouts_digest()
        item["space_digest"] = family.space_digest
    if chosen:
        content["entries"][workload]["configuration"] = {**family.space.control, **chosen}
    path = root / "policies" / name / "nvidia-h200.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(content))
    command = exporting(name, root / "policies", root / "out", "-w", workload, device="nvidia-h200")
    assert main(command) == 0
    content.pop("prediction", None)  # not exported: without it Python takes what C++ does
    path.write_text(yaml.safe_dump(content))
    return Exported(family, root / "policies", root / "out", "NVIDIA H200")


def shifted_in(root: Path) -> Exported:
    family = write_shifted(root / "shifted")
    write_policies(family, root / "policies")
    assert main(exporting(root / "shifted", root / "policies", root / "out")) == 0
    return Exported(family, root / "policies", root / "out", "Fake GPU")
