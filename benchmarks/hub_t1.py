"""The kernels of the FAIR benchmark hub by their T1 files: which sweep as they are, and what three of them lack.

    python benchmarks/hub_t1.py CHECKOUT --trials 30 --device cuda:0 --out benchmarks/results/hub-t1

CHECKOUT is a checkout of https://github.com/AutoTuningAssociation/benchmark_hub. Each of its T1 files is swept as it
is; one that cannot be (it names a kernel in another language, or arguments of another kernel) is swept again with the
entries of ``CORRECTIONS``, which follow the Python script next to it. The kernels are never edited. ``--corrected
FOLDER`` writes the corrected files there and stops.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from result_files import write_rows

KERNELS = ("convolution_milo", "dedispersion_milo", "gemm_milo", "hotspot_milo")


def vector(name: str, access: str, size: int | str) -> dict[str, Any]:
    fill = (
        {"FillType": "Constant", "FillValue": 0.0}
        if access == "WriteOnly"
        else {"FillType": "Random", "FillValue": 1.0}
    )
    return {"Name": name, "Type": "float", "MemoryType": "Vector", "AccessType": access, "Size": size, **fill}


def scalar(name: str, kind: str, value: float) -> dict[str, Any]:
    return {"Name": name, "Type": kind, "MemoryType": "Scalar", "FillValue": value}


# By file: the entry, what it should be, and why. None takes it away.
CORRECTIONS: dict[str, list[tuple[tuple[str | int, ...], Any, str]]] = {
    "dedispersion_milo": [
        (("KernelFile",), "dedisp_milo/dedispersion.cu", "the file named is the HIP kernel"),
        (("Arguments", 0, "Type"), "uint8", "the kernel takes unsigned char"),
        (("Arguments", 0, "Size"), "(ProblemSize[0] + 650) * 1536", "its size is 1: the kernel reads far behind it"),
        (("Arguments", 0, "FillValue"), 255, "whole numbers"),
        (("Arguments", 2, "Size"), 1536, "its size is 1: one shift for each of 1536 channels"),
        (("Arguments", 2, "FillType"), "Constant", "a negative shift has no meaning"),
        (("Arguments", 2, "FillValue"), 15.0, "shifts stay below 650 samples"),
        (("Arguments", 2, "MemType"), None, "the kernel has no constant array of that name"),
    ],
    "gemm_milo": [
        (("Language",), "CUDA", "the same text is CUDA with cl_to_cuda.h ahead of it"),
        (("KernelFile",), "gemm.cu", "the parts in one text, as the Python script joins them"),
        (("ProblemSize",), [4096, 4096, 1], "a third extent of 4096 does the whole product 4096 times"),
        (("LocalSize", "X"), "MDIMC", "block_size_x is no parameter"),
        (("LocalSize", "Y"), "NDIMC", "block_size_y is no parameter"),
        (
            ("Arguments",),
            [
                *(scalar(name, "int32", 4096) for name in ("kSizeM", "kSizeN", "kSizeK")),
                scalar("arg_alpha", "float", 1.0), scalar("arg_beta", "float", 0.0),
                vector("agm", "ReadOnly", 4096 * 4096), vector("bgm", "ReadOnly", 4096 * 4096),
                vector("cgm", "WriteOnly", 4096 * 4096),
                scalar("b_offset", "int32", 0), scalar("c_offset", "int32", 0),
            ],
            "those listed are of hotspot",
        ),
    ],
    "hotspot_milo": [
        (("Arguments", 1, "Size"), "(ProblemSize[0] + 20) * (ProblemSize[1] + 20)", "the kernel reads a border of 10"),
    ],
}  # fmt: skip
_PARTS = (
    "common.opencl",
    "xgemm_part1.opencl",
    "xgemm_part2.opencl",
    "xgemm_part3.opencl",
    "xgemm_part4.opencl",
)


def corrected(name: str, kernels: Path, folder: Path) -> Path:
    """Write the T1 file with its corrections, next to copies of the kernels."""
    shutil.copytree(kernels, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.json"))
    content = json.loads((kernels / f"{name}.json").read_text(encoding="utf-8"))
    for path, value, _ in CORRECTIONS.get(name, ()):
        entry: Any = content["KernelSpecification"]
        for step in path[:-1]:
            entry = entry[step]
        entry[path[-1]] = value
        if value is None:
            del entry[path[-1]]
    if name == "gemm_milo":
        parts = folder / "gemm_milo"
        text = "".join((parts / part).read_text(encoding="utf-8") for part in _PARTS)
        shutil.copy(parts / "cl_to_cuda.h", folder)
        (folder / "gemm.cu").write_text('#include "cl_to_cuda.h"\n' + text, encoding="utf-8")
    file = folder / f"{name}.json"
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return file


def sweep(
    file: Path, trials: int, device: str, samples: int, out: Path, seconds: float
) -> tuple[str, float, str]:
    """(what is wrong or empty, seconds, the line about the winner)."""
    command = [sys.executable, "-W", "ignore", "-m", "autotune", "sweep", str(file), "--search", "random"]
    command += ["--trials", str(trials), "--seed", "1", "--device", device, "--out", str(out)]
    command += ["--policies", str(out / "policies"), *(["--samples", str(samples)] if samples else [])]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={**os.environ, "COLUMNS": "200"},
        )
    except subprocess.TimeoutExpired:
        return f"over {seconds:g} s", seconds, ""
    elapsed = time.perf_counter() - began
    told = [
        line
        for line in done.stdout.splitlines()
        if re.search(r" of [\d,]+ tried\b", line) or line.startswith("winner")
    ]
    wrong = " ".join(done.stderr.strip().splitlines()[-4:]) if done.returncode else ""
    return wrong, elapsed, "; ".join(" ".join(line.split()) for line in told)


def main(words: Sequence[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--corrected", type=Path, help="only write the corrected files there")
    parser.add_argument("--only", default="", help="names, joined by commas")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/hub-t1"))
    given = parser.parse_args(words)
    kernels = given.checkout / "kernels"
    if given.corrected:
        for name in KERNELS:
            print(corrected(name, kernels, given.corrected))
        return []
    rows = []
    with tempfile.TemporaryDirectory(prefix="hub-t1-") as root:
        for name in KERNELS if not given.only else given.only.split(","):
            files = [("as it is", kernels / f"{name}.json")]
            if name in CORRECTIONS:
                files.append(("corrected", corrected(name, kernels, Path(root, name))))
            for form, file in files:
                out = Path(root, f"{name}-{form}".replace(" ", "-"))
                is_known_wrong = form == "as it is" and name in CORRECTIONS
                trials = min(given.trials, 5) if is_known_wrong else given.trials
                wrong, elapsed, told = sweep(file, trials, given.device, given.samples, out, given.seconds)
                row = {
                    "kernel": name,
                    "file": form,
                    "seconds": round(elapsed, 1),
                    "result": told,
                    "wrong": wrong,
                }
                rows.append(row)
                print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    write_rows(given.out.with_name(f"{given.out.name}.csv"), rows)
    return rows


if __name__ == "__main__":
    main()
