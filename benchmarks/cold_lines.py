"""Are cold times cold? Nanoseconds a load of a kernel that follows a chain in memory, plain and asking the L2 cache
to keep its lines (evict_last): with its lines still cached, after a memset of more than twice the cache, and after the
flush of a cold sample.

    python benchmarks/cold_lines.py [--out cold-lines.csv]

The first kernel to ask for its lines to be kept spoils the memset for all that follow, so ``plain`` is timed before and
after ``keeping``.
"""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from harness import arguments
from numpy.typing import NDArray
from result_files import write_rows

from autotune.compile import Cache
from autotune.device import DeviceProgram, open_backend

LINE = 32  # numbers of 4 bytes
MEGABYTES = (2, 16)
STEPS = 16384
COLUMNS = ("device", "kernel", "megabytes", "state", "ns_a_load", "least", "most")


def chain(megabytes: int) -> NDArray[np.uint32]:
    """A cycle through all lines in random order: at the begin of each the place of the next."""
    lines = megabytes << 20 >> 7
    order = np.random.default_rng(1).permutation(lines).astype(np.uint32)
    places = np.zeros(lines * LINE, np.uint32)
    places[order * np.uint32(LINE)] = np.roll(order, -1) * np.uint32(LINE)
    return places


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "cold-lines.csv")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=9)
    asked = parser.parse_args(words)
    if asked.check:
        print(f"{len(chain(MEGABYTES[0]))} numbers in a chain; the rest needs a GPU")
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as cache, closing(open_backend(asked.device)) as backend:
        source = Path(__file__).with_suffix(".cu")
        program = DeviceProgram(backend, Cache(Path(cache)), source, ("plain", "keeping"), {"block_size": 32})
        flush, out = program.room(256 << 20), program.room(16)
        for megabytes in MEGABYTES:
            places = program.room(megabytes << 20, chain(megabytes))
            numbers = np.array([places.address, out.address, STEPS], np.uint64).tobytes()
            for kernel in ("plain", "keeping", "plain"):
                for state in ("cached", "memset", "cold sample"):
                    times = []
                    for _ in range(asked.samples + 1):
                        if state == "memset":
                            flush.fill(0)
                        times += backend.sample(
                            partial(program.launch, kernel, 1, numbers),
                            1,
                            state == "cold sample",
                        )
                    ns = [time * 1e6 / STEPS for time in times[1:]]
                    figures = [f"{each:.0f}" for each in (median(ns), min(ns), max(ns))]
                    place = (backend.device.name, kernel, megabytes, state)
                    rows.append(dict(zip(COLUMNS, (*place, *figures), strict=True)))
                    print(*place, *figures)
            places.close()
        for room in (flush, out):
            room.close()
    write_rows(asked.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
