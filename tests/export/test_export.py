"""autotune export: the files that it writes, what it leaves out and what it refuses."""

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_family import write_policies, write_shifted
from exports import WARNINGS, Exported, exporting
from rich.console import Console

from autotune.cli.commands import main
from autotune.compile.variant import Variant
from autotune.declaration.family import Family, load_family
from autotune.declaration.space import Configuration
from autotune.declaration.workload import load_workload as load
from autotune.declaration.workload import prepare
from autotune.errors import FamilyError
from autotune.export.program import export, list_included
from autotune.files import data_root
from autotune.hardware import Device
from autotune.policy.file import PolicyFile, write
from autotune.policy.file import read_policy_file as read

# -- the files ----------------------------------------------------------------------------------------------


def test_the_files_are_these(allpairs: Exported) -> None:
    names = {
        path.relative_to(allpairs.folder).as_posix() for path in allpairs.folder.rglob("*") if path.is_file()
    }
    headers = (
        "array", "device", "dims", "integers", "mapping", "memory", "packing", "records", "requirements",
    )  # fmt: skip
    own = ("bit_product", "default", "differ", "store_tile", "tensor_tile")
    assert names == {
        "README.md", "CMakeLists.txt", "allpairs_tunedConfig.cmake", "main.cu", "allpairs.h", "allpairs_c.h",
        "allpairs_c.cpp", "allpairs_configurations.h",
        "allpairs_configurations.cpp", "allpairs_policies.cuh", "allpairs_launch.cu", "kernels/allpairs.cu",
        *(f"kernels/{name}.cuh" for name in own), *(f"kernels/autotune/{name}.cuh" for name in headers),
        "tuned/arithmetic.h",
        "tuned/curve.h", "tuned/layout.h", "tuned/order.h", "tuned/selection.h", "tuned/storage.h",
        "tuned/device_array.cuh",
        "example/genotypes.bin", "example/distance.bin",
    }  # fmt: skip


def test_the_kernel_source_and_its_headers_are_copied_whole(exported: Exported) -> None:
    for name, path in list_included(exported.family).items():
        assert (exported.folder / "kernels" / name).read_bytes() == path.read_bytes()


def test_a_policy_is_the_struct_that_was_measured(exported: Exported) -> None:
    text = "".join((exported.folder / f"{exported.name}_policies.cuh").read_text().split())
    (path,) = exported.policies.rglob("*.yaml")
    for item in read(path).entries.values():
        options = exported.family.choose_options(item.options)
        struct = Variant.make(exported.family, Configuration(item.configuration), options).source.struct
        assert "".join(struct.partition("{")[2].split()) in text


def test_the_example_is_the_workload_and_its_reference(allpairs: Exported) -> None:
    inputs = prepare(allpairs.family, load(allpairs.family, "ragged"), data_root())
    genotypes = np.fromfile(allpairs.folder / "example" / "genotypes.bin", np.int32).reshape(37, 131)
    np.testing.assert_array_equal(genotypes, inputs.arrays["genotypes"])
    distance = np.fromfile(allpairs.folder / "example" / "distance.bin", np.int32).reshape(37, 37)
    np.testing.assert_array_equal(distance, (genotypes[:, None] != genotypes[None]).sum(-1))


def test_the_generated_code_needs_nothing_of_ours(exported: Exported) -> None:
    for path in exported.folder.rglob("*"):
        if path.suffix in {".h", ".cuh", ".cu", ".cpp", ".txt"}:
            text = path.read_text()
            assert "/work" not in text and str(exported.family.folder) not in text
            assert "python" not in text.lower() or path.parts[-2] == "kernels"


def test_a_size_that_never_changes_is_a_number(shifted: Exported) -> None:
    header = (shifted.folder / "shifted.h").read_text()
    assert "std::uint32_t* touched = nullptr;  // 1\n" in header
    assert "std::int64_t count = 0;" in header and "std::int64_t one" not in header


def test_an_export_is_made_anew(allpairs: Exported, tmp_path: Path) -> None:
    stale = tmp_path / "kernels" / "old.cuh"
    command = exporting("allpairs", allpairs.policies, tmp_path, "-w", "ragged", device="nvidia-h200")
    assert main(command) == 0
    stale.touch()
    assert main(command) == 0
    assert not stale.exists()


# -- what is left out, what is rejected ----------------------------------------------------------------------


def run(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(list(arguments))
    shown = capsys.readouterr()
    return status, shown.out + shown.err


def test_a_family_with_a_plan_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    family = write_shifted(tmp_path / "shifted")
    write_policies(family, tmp_path / "policies")
    file = family.folder / "family.py"
    file.write_text(file.read_text() + "\n\ndef plan(execution):\n    pass\n")
    status, shown = run(exporting(family.folder, tmp_path / "policies", tmp_path / "out"), capsys)
    assert status == 3
    assert "family.py has a plan, the host program of a call" in shown
    assert not (tmp_path / "out").exists()


def test_a_policy_file_of_a_cpu_is_refused_and_one_without_entries_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    family = write_shifted(tmp_path / "shifted")
    file = read(write_policies(family, tmp_path / "policies"))
    folder = tmp_path / "policies" / family.name
    write(folder / "cpu-some.yaml", replace(file, device=Device(kind="cpu", name="Some", arch="")))
    write(folder / "by-hand.yaml", replace(file, entries={}))
    places = (family.folder, tmp_path / "policies", tmp_path / "o")
    status, shown = run(exporting(*places, device="cpu-some"), capsys)
    assert status == 8 and "it is for the cpu Some, and an export is CUDA: name a GPU's policy file" in shown
    status, shown = run(exporting(*places, device="by-hand"), capsys)
    assert status == 0 and "configurations of shifted for 0 entries" in shown
    assert "Made from by-hand.yaml (nothing measured)." in (tmp_path / "o" / "README.md").read_text()


def test_a_stale_file_and_one_that_is_not_there_are_refused(
    allpairs: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = allpairs.policies.rglob("*.yaml")
    file = read(path)
    old = {name: replace(item, source_digest="0") for name, item in file.entries.items()}
    target = tmp_path / "policies" / "allpairs" / "nvidia-h200.yaml"
    target.parent.mkdir(parents=True)
    write(target, replace(file, entries=old))
    given = ("allpairs", tmp_path / "policies", tmp_path / "o", "-w", "ragged")
    status, shown = run(exporting(*given, device="nvidia-h200"), capsys)
    assert status == 8 and "the kernel source changed" in shown
    status, shown = run(exporting(*given, device="nvidia-h100"), capsys)
    assert status == 8 and "no policy file allpairs/nvidia-h100.yaml" in shown
    assert "(there: nvidia-h200)" in shown
    assert "a sweep on that device makes one, and docs/guides/no-gpu.md shows one to write by hand" in shown
    write(target, replace(file, entries={**file.entries, "wide": old["wide"]}))
    status, shown = run(exporting(*given, device="nvidia-h200"), capsys)
    assert status == 0
    assert "left out  NVIDIA H200: entry wide: stale: the kernel source changed" in shown
    assert "entry wide: stale" in (tmp_path / "o" / "README.md").read_text()


def test_entries_of_another_objective_are_left_out(
    shifted: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = shifted.policies.rglob("*.yaml")
    file = read(path)
    other = replace(file.entries["some"], workload="few (with-transform)", objective="with-transform")
    target = tmp_path / "policies" / "shifted" / "fake-gpu.yaml"
    target.parent.mkdir(parents=True)
    write(target, replace(file, entries={**file.entries, other.workload: other}))
    places = (shifted.family.folder, tmp_path / "policies")
    status, shown = run(exporting(*places, tmp_path / "kernel"), capsys)
    assert status == 0 and "entries of another objective than kernel: few (with-transform)" in shown
    status, _ = run(exporting(*places, tmp_path / "single", "--objective", "with-transform"), capsys)
    assert status == 0
    table = (tmp_path / "single" / "shifted_configurations.cpp").read_text()
    assert '{"few (with-transform)", "Fake GPU", 90, ' in table and '{"many", ' not in table
    assert run(exporting(*places, tmp_path / "x", "--objective", "transform"), capsys)[0] == 2


def test_a_name_that_a_person_gave_stays_a_name(shifted: Exported, tmp_path: Path) -> None:
    (path,) = shifted.policies.rglob("*.yaml")
    file = read(path)
    name = 'a "quick"\none; } \\'
    target = tmp_path / "policies" / "shifted" / "fake-gpu.yaml"
    target.parent.mkdir(parents=True)
    write(target, replace(file, entries={name: replace(file.entries["some"], workload=name)}))
    assert main(exporting(shifted.family.folder, tmp_path / "policies", tmp_path / "out")) == 0
    source = tmp_path / "out" / "shifted_configurations.cpp"
    subprocess.run(["g++", *WARNINGS, "-fsyntax-only", f"-I{tmp_path / 'out'}", str(source)], check=True)
    assert "namespace a_quick_one {" in source.read_text()


def test_a_folder_with_something_else_in_it_and_a_large_example_are_refused(
    allpairs: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").touch()
    given = ("allpairs", allpairs.policies)
    status, shown = run(exporting(*given, tmp_path, "-w", "ragged", device="nvidia-h200"), capsys)
    assert status == 7 and "is not empty" in shown
    large = tmp_path / "large.yaml"
    large.write_text(
        "schema: 1\nworkload: large\nfamily: allpairs\nparameters: {instances: 300, attributes: 60000}\n"
    )
    status, shown = run(exporting(*given, tmp_path / "new", "-w", str(large), device="nvidia-h200"), capsys)
    assert status == 4 and "an example at most 64 MiB" in shown


# -- orders -------------------------------------------------------------------------------------------------


def test_an_order_is_a_permutation_of_the_caller_s(mummergpu: Exported) -> None:
    table = (mummergpu.folder / "mummergpu_configurations.cpp").read_text()
    assert "// won on phix, NVIDIA H200" in table and "tree_order=reordered" in table
    assert "{{0}, {{0, 0, 4, false}, {0, 12, 4, false}}},  // nodes" in table  # moved; two links renumbered
    assert "{{-1}, {}},  // reference" in table
    for header, null in (("mummergpu.h", " = nullptr;"), ("mummergpu_c.h", "; /*")):
        assert f"int64_t* tree_order_reordered{null}" in (mummergpu.folder / header).read_text()
    permutation = np.fromfile(mummergpu.folder / "example" / "tree_order_reordered.bin", np.int64)
    np.testing.assert_array_equal(np.sort(permutation), np.arange(permutation.size))
    inputs = prepare(mummergpu.family, load(mummergpu.family, "phix"), data_root())
    order: Any = mummergpu.family.orders["tree_order", "reordered"]
    made = order.permutation(inputs.arrays, "node", len(inputs.arrays["nodes"]))
    np.testing.assert_array_equal(permutation, made)
    readme = (mummergpu.folder / "README.md").read_text()
    assert "`tree_order_reordered`: what tree_order=reordered stands for" in readme


def test_without_an_order_there_is_no_input_of_one(allpairs: Exported) -> None:
    for name in ("allpairs.h", "allpairs_launch.cu", "allpairs_configurations.h"):
        assert "order.h" not in (allpairs.folder / name).read_text()


@pytest.mark.parametrize(
    ("constraint", "is_needed"),
    [
        ("memory != 'texture' or count >= 4", False),
        ("point_order == 'backwards' or records != 'soa'", True),
        ("point_order == 'given' or count >= 4", True),  # what holds at some sizes only
        ("point_order == 'given' or records == 'soa'", False),
    ],
)
def test_an_order_that_a_kernel_relies_on_has_to_be_given(
    constraint: str, is_needed: bool, tmp_path: Path
) -> None:
    folder = write_shifted(tmp_path / "shifted").folder
    declared = folder / "family.yaml"
    old = "memory != 'texture' or count >= 4"
    assert old in declared.read_text()
    declared.write_text(declared.read_text().replace(old, constraint))
    family = load_family(folder)
    write_policies(family, tmp_path / "policies")
    export(family, ["fake-gpu"], tmp_path / "out", Console(), policies=tmp_path / "policies")
    table = (tmp_path / "out" / "shifted_configurations.cpp").read_text()
    assert (f"{{{{0, {'true' if is_needed else 'false'}}}}}}}," in table) and "{{-1, false}}}," in table


def test_an_array_with_the_name_of_an_order_is_refused(tmp_path: Path) -> None:
    folder = write_shifted(tmp_path / "shifted").folder
    for name in ("family.yaml", "family.py", "shifted.cu"):
        file = folder / name
        file.write_text(re.sub(r"\btable\b", "point_order_backwards", file.read_text()))
    family = load_family(folder)
    write_policies(family, tmp_path / "policies")
    with pytest.raises(
        FamilyError, match="would be an input point_order_backwards, and an array has that name"
    ):
        export(family, ["fake-gpu"], tmp_path / "out", Console(), policies=tmp_path / "policies")


# -- what a policy file may not do ---------------------------------------------------------------------------


HOSTILE = 'x\n#error INJECTED\n*/ " ); INJECTED \\" ${ENV} $(id) `id` ]] ::: \x1b]0;t\x07 <b>| | \\'


def exported_with(
    family: Family, file: PolicyFile, folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    folder.mkdir()
    write(folder / "fake-gpu.yaml", file)
    path = folder / "policies" / "shifted" / "fake-gpu.yaml"
    path.parent.mkdir(parents=True)
    (folder / "fake-gpu.yaml").rename(path)
    return run(exporting(family.folder, folder / "policies", folder / "out"), capsys)


def test_a_policy_file_puts_nothing_of_its_own_into_the_code(
    shifted: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = shifted.policies.rglob("*.yaml")
    file = read(path)
    some = file.entries["some"]
    for number, device in enumerate((HOSTILE, "x\x1b", "x" * 300, "x\u2028y")):
        changed = replace(file, device=replace(file.device, name=device))
        status, shown = exported_with(shifted.family, changed, tmp_path / f"device{number}", capsys)
        assert status == 8
        assert "device name is" in shown
    hostile = {
        "device": replace(file, device=replace(file.device, name='NVIDIA "*/ \\" `id` $(id) <b> | \\')),
        "entry": replace(file, entries={HOSTILE: replace(some, name=HOSTILE, workload=HOSTILE)}),
        "told": replace(
            file, entries={"some": replace(some, date=HOSTILE, compiler=HOSTILE, renewed=HOSTILE)}
        ),
        "configuration": replace(
            file, entries={**file.entries, "other": replace(some, configuration={"memory": HOSTILE})}
        ),
    }
    for name, changed in hostile.items():
        status, shown = exported_with(shifted.family, changed, tmp_path / name, capsys)
        assert status == 0, shown
        out = tmp_path / name / "out"
        for text in (p for p in out.iterdir() if p.suffix in (".h", ".cpp", ".cu", ".cuh", ".txt", ".md")):
            for line in text.read_text().splitlines():
                assert not line.lstrip().startswith(("#error", "INJECTED"))
                assert not (line.lstrip().startswith("//") and line.endswith("\\"))
                assert line.isprintable() or "\t" in line
        source = out / "shifted_configurations.cpp"
        subprocess.run(["g++", *WARNINGS, "-fsyntax-only", f"-I{out}", str(source)], check=True)
        assert "<b>" not in (out / "README.md").read_text().replace("\\<b\\>", "")


def test_a_title_stays_a_title(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    family = write_shifted(tmp_path / "shifted")
    declared = family.folder / "family.yaml"
    declared.write_text(
        declared.read_text().replace(
            "title: points moved by offsets and steps", f"title: {json.dumps(HOSTILE)}"
        )
    )
    family = load_family(family.folder)
    file = read(write_policies(family, tmp_path / "policies"))
    status, shown = exported_with(family, file, tmp_path / "e", capsys)
    assert status == 0, shown
    first, second = (tmp_path / "e" / "out" / "shifted.h").read_text().splitlines()[:2]
    assert first.startswith("// x #error INJECTED")
    assert not first.endswith("\\")
    assert second.startswith("//")


def test_what_reaches_a_shell_is_quoted(tmp_path: Path) -> None:
    family = write_shifted(tmp_path / "shifted")
    write_policies(family, tmp_path / "policies")
    options = ("-DA=$(touch x)", "-DB=a b;c", "-DC=`id`")
    changed = replace(family, compile_options=options)
    export(changed, ["fake-gpu"], tmp_path / "out", Console(), policies=tmp_path / "policies")
    readme = (tmp_path / "out" / "README.md").read_text()
    (command,) = [line for line in readme.splitlines() if line.startswith("nvcc ")]
    assert set(options) <= set(shlex.split(command))
    assert "[==[$<$<COMPILE_LANGUAGE:CUDA>:-DC=`id`>]==]" in (tmp_path / "out" / "CMakeLists.txt").read_text()


def test_nothing_left_to_export_says_why(
    shifted: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = shifted.policies.rglob("*.yaml")
    file = replace(read(path), entries={}, default={"memory": "gone"})
    status, shown = exported_with(shifted.family, file, tmp_path / "e", capsys)
    assert status == 8
    assert "nothing is left to export" in shown
    assert "unknown value of policy memory 'gone'" in shown


@pytest.mark.parametrize("name", ["kernels", "README.md", "tuned/layout.h"])
def test_a_planted_link_is_not_written_through(
    shifted: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (path,) = shifted.policies.rglob("*.yaml")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").write_text("precious")
    out = tmp_path / "e" / "out"
    (out / name).parent.mkdir(parents=True)
    (out / "shifted_policies.cuh").touch()
    (out / name).symlink_to(victim if name == "kernels" else victim / "kept")
    policies = tmp_path / "policies" / "shifted"
    policies.mkdir(parents=True)
    write(policies / "fake-gpu.yaml", read(path))
    status, shown = run(exporting(shifted.family.folder, tmp_path / "policies", out), capsys)
    assert status == 7
    assert "is a link" in shown
    assert (victim / "kept").read_text() == "precious"
    assert [p.name for p in victim.iterdir()] == ["kept"]
