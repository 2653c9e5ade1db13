"""The command line as a user meets it: every refusal, its message and its exit code."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest
from fakes import FAMILY, WORKLOAD, sweep, write_family
from waiting import PATIENCE_S

from autotune import files as paths
from autotune.cli.commands import app, main
from autotune.cli.run import RunRequest
from autotune.declaration import load_family
from autotune.errors import UsageError
from autotune.extensions import EXTENSIONS
from autotune.policy.merge import update
from autotune.report.progress_bar import Live

CPU = ["--device", "cpu"]


def refused(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert main(list(arguments)) == code
    return capsys.readouterr().err


def places(tmp_path: Path) -> list[str]:
    return ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]


def test_families_and_list_run_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["families"]) == 0
    assert "allpairs" in capsys.readouterr().out
    assert main(["list", "allpairs", "--preset", "ladder"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 6
    assert "6 configurations" in shown.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sweep", "alpairs"], 2, "unknown family 'alpairs'; did you mean 'allpairs'?"),
        (["sweep", "allpairs", "--set", "memry=global"], 2, "unknown policy 'memry'; did you mean 'memory'?"),
        (["sweep", "allpairs", "--set", "memory=textur"], 2, "policy memory 'textur'; did you mean 'texture'?"),
        (["sweep", "allpairs", "--set", "memory"], 2, "write --set policy=value"),
        (["sweep", "allpairs", "--preset", "nave"], 2, "unknown preset 'nave'; did you mean 'naive'?"),
        (["sweep", "allpairs", "--workload", "hapmap"], 2, "unknown workload 'hapmap'"),
        (["sweep", "allpairs", "--workload", "nowhere.yaml"], 4, "workload file nowhere.yaml does not exist"),
        (["sweep", "allpairs", "--device", "gpu"], 2, "unknown device 'gpu'"),
        (["sweep", "allpairs", "--arch", "sm_90"], 2, "--arch goes with --static"),
        (["sweep", "allpairs", "--set", "accumulate=warp_shuffle", "--set", "tile=8"], 2, "no configuration is left"),
        (["show", "allpairs", "tile=3"], 2, "unknown value of policy tile '3'"),
        (["show", "allpairs", "full"], 2, "holds 1216 configurations"),
        (["sweep", "/"], 3, "holds no family.yaml"),
        (["report", "/nowhere"], 7, "holds no record"),
        (["sweep", "allpairs", "--workload", "hapmap3"], 4, "name its folder with --data"),
        (["run", "allpairs", "-i", "genotype=x.npy"], 2, "did you mean 'genotypes'?"),
        (["run", "allpairs", "-i", "genotypes=/nowhere.npy"], 4, "cannot be read"),
        (["run", "allpairs", "-i", "genotypes"], 2, "write -i name=value"),
        (["run", "allpairs", "-o", "d.txt"], 2, "must end in .npy"),
        (["worker", "--wait", "0"], 2, "Missing option '--store'"),
        (["push", "allpairs"], 2, "Missing option '--to'"),
        (["export", "allpairs", "--device", "nvidia-h200"], 2, "Missing option '--output'"),
    ],
)  # fmt: skip
def test_names_and_usage_are_refused_with_what_is_allowed(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, code, *arguments)


def test_unknown_commands_and_options_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown command 'swep'; did you mean 'sweep'?" in refused(capsys, 2, "swep")
    assert main(["sweep", "allpairs", "--presett", "naive"]) == 2
    assert main([]) in (0, 2)  # the help
    assert main(["--version"]) == 0


def test_no_gpu_when_one_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pycuda").mkdir()
    (tmp_path / "pycuda" / "__init__.py").write_text("raise ImportError('none here')\n")
    monkeypatch.syspath_prepend(tmp_path)  # the measuring process has the same path
    monkeypatch.delitem(sys.modules, "pycuda", raising=False)
    said = refused(capsys, 5, "sweep", "allpairs", "--device", "cuda", *places(tmp_path))
    assert "PyCUDA is not usable here" in said
    assert "--device cpu" in said


def test_malformed_yaml_and_bad_input_are_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = write_family(tmp_path / "doubler", FAMILY.replace("policies:", "policies: ["))
    said = refused(capsys, 3, "sweep", str(folder), *places(tmp_path))
    assert "malformed YAML" in said and "line" in said
    folder = write_family(tmp_path / "doubler", FAMILY.replace("kernels:", "kernel:"))
    assert "unknown key 'kernel'; did you mean 'kernels'?" in refused(
        capsys, 3, "sweep", str(folder), *places(tmp_path)
    )
    for name, array, what in (
        ("outside", np.full((4, 5), 4), "value 4 is outside the allowed 0..3"),
        ("negative", np.full((4, 5), -1), "value -1 is outside the allowed 0..3"),
        ("none", np.zeros((0, 5)), "shape (0, 5) is empty"),
        ("flat", np.zeros(5), "1 dimensions given, 2 needed (instances, attributes)"),
        ("half", np.full((4, 5), 0.5), "fractional or NaN"),
        ("nan", np.full((4, 5), np.nan), "fractional or NaN"),
    ):
        np.save(tmp_path / f"{name}.npy", array)
        said = refused(capsys, 4, "run", "allpairs", *CPU, "-i", f"genotypes={tmp_path / name}.npy")
        assert what in said
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").glob("*.csv"))


def test_an_unwritable_folder_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    said = refused(capsys, 7, "sweep", "allpairs", *CPU, "--out", str(tmp_path / "file" / "out"))
    assert "cannot write to" in said and "--out" in said
    said = refused(
        capsys,
        7,
        "sweep",
        "allpairs",
        *CPU,
        "--out",
        str(tmp_path / "o"),
        "--policies",
        str(tmp_path / "file"),
    )
    assert "--policies" in said


def test_show_prints_code_layouts_and_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "allpairs", "shared"]) == 0
    shown = capsys.readouterr().out
    assert "Accumulate::shared_memory" in shown
    assert "instances, attributes" in shown


@pytest.mark.nvrtc
def test_a_static_sweep_needs_no_gpu(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["sweep", "allpairs", "--static", "--arch", "sm_90", "--arch", "sm_80", "--preset", "ladder",
                 "--out", str(tmp_path)]) == 0  # fmt: skip
    frame = pd.read_csv(tmp_path / "static.csv")
    assert len(frame) == 12
    assert set(frame["arch"]) == {"sm_90", "sm_80"}
    assert (frame["registers"] > 0).all()
    assert frame["occupancy"].between(0.1, 1).all()
    assert "sm_80" in capsys.readouterr().out


def test_doctor_names_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    for part in ("C++ compiler", "NVRTC", "PyCUDA", "GPU", "Optuna"):
        assert part in shown
    assert "-std=" not in shown and "--std" not in shown  # a compiler's version, not its options


def test_doctor_asks_for_nothing_that_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = "install a CUDA toolkit, then pip install x"
    monkeypatch.setattr("autotune.cli.show._PARTS", (("PyCUDA", lambda: "", whole),))
    for nvcc, advice in (("nvcc 13.0", "pip install x"), ("", whole)):
        monkeypatch.setattr("autotune.cli.show._nvcc", lambda nvcc=nvcc: nvcc)
        assert main(["doctor"]) == 0
        (row,) = [line for line in capsys.readouterr().out.splitlines() if "PyCUDA" in line]
        assert row.split(None, 2)[2].strip() == advice


def test_what_is_missing_is_installed_from_where_autotune_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = Path(paths.__file__).parents[1]
    assert paths.pip_install("static") == f"pip install -e '{checkout}[static]'"
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path / "site-packages" / "autotune")
    info = tmp_path / "autotune_layouts-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: autotune-layouts\nVersion: 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert paths.pip_install("cuda") == "pip install 'autotune-layouts[cuda]'"
    assert paths.pip_install() == "pip install 'autotune-layouts'"
    (info / "direct_url.json").write_text('{"url": "file:///a/checkout", "dir_info": {}}')
    assert paths.pip_install("cuda") == "pip install 'autotune-layouts[cuda] @ file:///a/checkout'"


def test_a_sweep_leaves_results_report_and_policy_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = [
        "sweep",
        "allpairs",
        *CPU,
        "--preset",
        "ladder",
        "--workload",
        "ragged",
        "--workload",
        "primer",
    ]
    assert main([*arguments, *places(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for word in ("winner", "runner-up", "control", "report.html", "results.csv", "policy file"):
        assert word in shown
    frame = pd.read_csv(tmp_path / "out" / "results.csv")
    assert len(frame) == 12
    assert set(frame["state"]) == {"measured"}
    assert len(list((tmp_path / "policies" / "allpairs").glob("cpu-*.yaml"))) == 1
    assert main(["report", str(tmp_path / "out")]) == 0
    assert (
        main(
            [
                "run",
                "allpairs",
                *CPU,
                "-w",
                "ragged",
                "-o",
                str(tmp_path / "d.npy"),
                "--explain",
                *places(tmp_path)[2:],
            ]
        )
        == 0
    )
    assert "exact" in capsys.readouterr().out
    distance = np.load(tmp_path / "d.npy")
    assert distance.shape == (37, 37)
    assert not list(tmp_path.glob("*.partial*"))


def test_a_pipe_may_have_any_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "distances")
    family = load_family("allpairs")
    assert RunRequest(family, "ragged", output=tmp_path / "distances").inputs().sizes
    with pytest.raises(UsageError, match=r"must end in \.npy"):
        RunRequest(family, "ragged", output=tmp_path / "others").inputs()


def test_python_dash_m_is_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "autotune", "list", "allpairs", "--count"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1216 configurations" in done.stderr


def test_importing_the_package_and_the_dispatcher_is_light() -> None:
    program = (
        "import sys, json, autotune, autotune.dispatch, autotune.device.cpu.backend, autotune.device.cuda.backend;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ}
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    heavy = {
        "optuna",
        "pandas",
        "plotly",
        "jinja2",
        "click",
        "rich",
        "jsonschema",
        "sqlalchemy",
        "scipy",
        "filelock",
    }
    assert not loaded & heavy


def test_help_is_light() -> None:
    program = (
        "import sys, json; from autotune.__main__ import entry_point; sys.argv[1:] = ['--help']\n"
        "try: entry_point()\n"
        "finally: print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stderr)}
    assert "Exit codes" in done.stdout
    assert not loaded & {"numpy", "yaml", "rich"}
    own = {name for name in json.loads(done.stderr) if name.startswith("autotune.")}
    assert own <= {f"autotune.{name}" for name in ("__main__", "cli", "cli.commands", "errors", "extensions")}


def test_run_loads_what_it_uses(tmp_path: Path) -> None:
    """The family, its policies, the cpu device: no module of another command, of a sweep, or that prints tables."""
    np.save(tmp_path / "genotypes.npy", np.zeros((4, 5), np.uint8))
    words = ["run", "allpairs", *CPU, "-i", f"genotypes={tmp_path / 'genotypes.npy'}"]
    program = (
        "import sys, json; from autotune.cli.commands import main\n"
        f"assert main({words}) == 0\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(json.loads(done.stderr.splitlines()[-1]))
    heavy = {
        "optuna",
        "pandas",
        "plotly",
        "jinja2",
        "jsonschema",
        "sqlalchemy",
        "scipy",
        "rich",
        "pydantic",
        "filelock",
    }
    assert not {name.partition(".")[0] for name in modules} & heavy
    parts = {name.split(".")[1] for name in modules if name.startswith("autotune.")}
    assert not parts & {*EXTENSIONS, "api", "report"}
    assert not {name for name in modules if name.startswith("autotune.engine.")}
    commands = {name for name in modules if name.startswith("autotune.cli.")}
    assert commands == {f"autotune.cli.{name}" for name in ("commands", "options", "run")}


# ---- Ctrl-C


def test_an_interruption_says_what_is_kept_and_how_to_go_on(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C comes: a KeyboardInterrupt while trials are watched, inside the command."""

    def update(self: Live, *_: object) -> None:
        self.seen = getattr(self, "seen", 0) + 1  # type: ignore[attr-defined]
        if self.seen == 3:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    monkeypatch.setattr(Live, "update", update)
    assert main(["sweep", str(folder), *CPU, *places(tmp_path)]) == 130
    shown = capsys.readouterr()
    said = "interrupted: what was measured is recorded (3 of 12); run the same command to resume\n"
    assert shown.err.endswith(said)
    assert "error" not in shown.err
    frame = pd.read_csv(tmp_path / "out" / "results.csv")
    assert len(frame) == 3
    monkeypatch.undo()
    assert main(["sweep", str(folder), *CPU, *places(tmp_path)]) == 0
    assert "12 measured, 3 of them recorded before" in capsys.readouterr().out


def test_an_interruption_while_compiling_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(self: Live, done: int, total: int) -> None:
        self._compiled = 5, total
        raise KeyboardInterrupt

    monkeypatch.setattr(Live, "report_compiled", compiled)
    assert main(["sweep", str(folder), *CPU, *places(tmp_path)]) == 130
    assert (
        "interrupted: 5 of 12 are compiled and kept; run the same command to resume"
        in capsys.readouterr().err
    )


def test_any_command_that_is_interrupted_says_so_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("autotune.cli.show.doctor", stop)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_ctrl_c_while_modules_are_imported_is_no_traceback(tmp_path: Path) -> None:
    """Where the command line is imported, here a module that never ends, an interrupt is one word."""
    package = tmp_path / "slow.py"
    package.write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where tests run in the background
        "class Slow:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'autotune.cli.commands':\n"
        "            print('importing', flush=True)\n"
        "            time.sleep(3600)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from autotune.__main__ import entry_point\n"
        "entry_point()\n"
    )
    with subprocess.Popen(
        [sys.executable, str(package)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (130, "interrupted\n")


# ---- --strict


def test_strict_fails_after_everything_was_recorded(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = folder / "doubler.cu"
    source.write_text(source.read_text().replace("2 * x", "(Policy::block_size == 256 ? 3 : 2) * x"))
    assert main(["sweep", str(folder), *CPU, *places(tmp_path)]) == 0
    assert "\n3 wrong_result, the first block_size=256" in capsys.readouterr().out
    assert main(["sweep", str(folder), *CPU, "--strict", *places(tmp_path)]) == 11
    shown = capsys.readouterr()
    assert "error: --strict: 3 wrong_result, the first block_size=256" in shown.err
    assert "policy file" in shown.out
    assert main(["sweep", str(folder), *CPU, "--strict", "--set", "block_size=64", *places(tmp_path)]) == 0
    assert main(["sweep", str(folder), "--static", "--strict", *places(tmp_path)]) == 2


# ---- options


def test_the_list_of_commands_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    commands = capsys.readouterr().out.partition("Commands:")[2].partition("Exit codes")[0]
    assert len(commands.splitlines()) > 15
    assert "..." not in commands


def test_where_files_go_has_the_same_two_names_everywhere() -> None:
    context = click.Context(app)
    commands = {name: app.get_command(context, name) for name in app.list_commands(context)}
    named = {
        name: set(one.opts)
        for name, command in commands.items()
        for one in command.params
        if {"--out", "--output", "-o"} & set(one.opts)
    }
    assert {"sweep", "plan", "report", "run", "compare", "limits"} <= set(named)
    assert all({"--out", "-o"} <= options for options in named.values())


def test_explain_takes_sizes_that_no_workload_has(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    update(tmp_path / "policies", [sweep(folder, tmp_path).run()])
    arguments = ["explain", str(folder), "--device", "fake-gpu", "--policies", str(tmp_path / "policies")]
    assert main([*arguments, "--size", "n=4000"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "doubler on small resized (n 4000), cuda: Fake GPU"
    assert shown[2].split()[:2] == ["taken", "nearest"]
    for size, said in (
        ("m=3", "unknown extent 'm'"),
        ("n=0", "--size n=0: an extent is a whole number from 1"),
        ("n", "'n' is not NAME=N"),
    ):
        assert said in refused(capsys, 2, *arguments, "--size", size)


def test_explain_names_the_policy_files_that_there_are(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    update(tmp_path / "policies", [sweep(folder, tmp_path).run()])
    said = refused(
        capsys, 2, "explain", str(folder), "--device", "fake-gpus", "--policies", str(tmp_path / "policies")
    )
    assert f"unknown device or policy file 'fake-gpus' in {tmp_path / 'policies' / 'doubler'}" in said
    assert "did you mean 'fake-gpu'?" in said


def test_check_takes_several_families_and_none_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("doubler", "tripler")
    given = []
    for name in names:
        made = write_family(tmp_path / name, FAMILY.replace("doubler\n", f"{name}\n", 1))
        (made / "workloads" / "small.yaml").write_text(WORKLOAD.replace("family: doubler", f"family: {name}"))
        (made / "family.py").write_text(
            "def reference(arrays, options):\n    return {'y': 2 * arrays['x']}\n"
        )
        update(tmp_path / "policies", [sweep(made, tmp_path / name).run()])
        given += ["--family", str(made)]
    files = ["--policies", str(tmp_path / "policies")]
    own = [str(tmp_path / "policies" / name / "fake-gpu.yaml") for name in names]
    assert main(["check", *own, *given, *files]) == 0
    shown = capsys.readouterr().out
    assert shown.count("accepted") == 4
    assert "it is for family tripler, not doubler" in _refusal(capsys, ["check", *own, *given[:2], *files])
    assert main(["check", *own, *given[:2], *given[:2], *files]) == 2
    assert "one folder a family" in capsys.readouterr().err


def _refusal(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    assert main(arguments) == 8
    return capsys.readouterr().out


def test_a_disk_that_is_full_at_the_report_says_how_to_have_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text = Path.write_text

    def full(path: Path, *arguments: Any, **named: Any) -> int:
        if "report.html" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_text(path, *arguments, **named)

    monkeypatch.setattr(Path, "write_text", full)
    out, policies = str(tmp_path / "out"), tmp_path / "policies"
    named = ["--out", out, "--policies", str(policies), "--samples", "3"]
    assert main(["sweep", str(folder), "--device", "cpu", *named]) == 7
    said = capsys.readouterr().err
    assert (
        "report.html: No space left on device; free space there; what was measured is recorded, and " in said
    )
    assert f"`autotune report {out}` reports it" in said
    assert list(policies.glob("*/*.yaml"))
    monkeypatch.setattr(Path, "write_text", write_text)
    assert main(["report", out]) == 0
