"""A rank of an MPI program that spreads the walker: ``rank_process.py FOLDER END``, where the last rank then ends as
END says: ``well``, ``stops`` (as a frozen host), ``fails`` or ``killed``."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

from autotune.declaration import load_family, load_workload, prepare
from autotune.errors import AutotuneError, DeviceError
from autotune.spread import RankSpread, rank_spread


def main(folder: Path, end: str) -> int:
    family = load_family(folder)
    inputs = prepare(family, load_workload(family, "small"), folder)
    right = family.module.reference(inputs.arrays, {})  # type: ignore[union-attr]
    configuration = {"memory": "constant", "padding": 8}
    if (
        MPI.COMM_WORLD.Get_rank() > 1
    ):  # as if these were on another host, so that they have to send what they made
        rank_spread._inode = lambda _array: None
    with RankSpread(family, inputs, "cpu", configuration=configuration, chunk_seconds=60.0) as spread:
        first = spread.ranks.is_first
        spread.calibrate()
        for allocation in ("automatic", "contiguous"):
            report = spread.run(allocation, 1)
            assert sum(share.units for share in report.shares) == len(spread.units)
            for name, array in right.items() if first else ():
                np.testing.assert_array_equal(spread.outputs()[name], array, name)
        spread.run(gather=False)
        pieces = spread.pieces()
        for begin, values in pieces["y"]:
            np.testing.assert_array_equal(values, right["y"].reshape(-1)[begin : begin + values.size])
        units = sum(values.size for _, values in pieces["y"]) // right["y"].shape[1]
        assert sum(spread.ranks.gather(units)) == len(spread.units)
        sums = spread.ranks.gather(pieces["total"][0][1].copy())
        np.testing.assert_array_equal(np.sum(sums, 0), right["total"])
        for name, array in spread.fetch().items():
            np.testing.assert_array_equal(array, right[name], name)
        os.write(1, b"all right\n")  # at once: print may write the end of a line by itself
        spread.ranks.silent_s = 1.0 if end == "stops" else 60.0
        if spread.ranks.number == spread.ranks.count - 1:
            if end in ("stops", "killed"):
                os.kill(os.getpid(), signal.SIGSTOP if end == "stops" else signal.SIGKILL)
            if end == "fails":
                os.kill(spread.members[0].process.pid, signal.SIGKILL)
        spread.run()
    print("ended well", flush=True)
    return 0


if __name__ == "__main__":
    try:
        code = main(Path(sys.argv[1]), sys.argv[2])
    except DeviceError as problem:
        os.write(1, f"error: {problem}\n".encode())
        code = problem.exit_code
    except AutotuneError as problem:
        code = problem.exit_code
    sys.exit(code)
