"""Faults planted in a kernel that is right, and a sweep over them: what verification has to see.

Each is a value of the policy ``fault`` of a family, so that all of them are compiled at once. In how many sweeps each
is caught is counted by ``benchmarks/planted_faults.py``, ``test_planted.py`` looks at one.
"""

import contextlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import planted_winners

from autotune.cli.commands import main
from autotune.policy.file import read_policy_file as read

__all__ = ["FAULTS", "Fault", "Seen", "families", "sweep_all"]

# What a right kernel does: fill writes scratch, blend reads it by way of shared memory, rest has the other outputs.
FILL = "if (i < n) s.store(2.0f * x.load(i), i);"
TILE = """__shared__ float tile[BLOCK + 1];
tile[t + 1] = i < n ? s.load(i) : 0.0f;
if (t == 0) tile[0] = i == 0 ? 0.0f : s.load(i - 1);
"""
BLEND = TILE + "__syncthreads();\nif (i < n) y.store(tile[t] + tile[t + 1], i);"
COUNTS = "if (i < n) counts.add(1, k.load(i));"
SUMS = "if (i < n) single.store(2.0f * x.load(i), i);\nif (i < n) twice.store(2.0 * x.load(i), i);"
MARKS = "if (i < 4) marks.store(mark(i), i);"
ZEROS = "if (i < 4) zeros.store(0.0f, i);"
ROWS = "if (i < 35) rows.store(w.load(i % 5), i / 5, i % 5);"


def blend(value: str) -> str:
    """The right blend, but for what is stored."""
    return BLEND.replace("tile[t] + tile[t + 1], i", f"{value}, i")


def rest(**changes: str) -> str:
    """The right rest, but for some of its parts."""
    parts = {"counts": COUNTS, "sums": SUMS, "marks": MARKS, "zeros": ZEROS, "rows": ROWS}
    return "\n".join({**parts, **changes}.values())


REST = rest()
RIGHT = "tile[t] + tile[t + 1]"
RUNS = "runs[static_cast<int>(Policy::fault)]"  # each fault counts its own


@dataclass(frozen=True, kw_only=True)
class Fault:
    """``name`` is its value of the policy, ``what`` what the kernel does. Bodies are given where they differ from the
    right kernel's. ``of`` is the family that it is planted in. ``cpu`` is the state that a sweep on the cpu gives it,
    and a part of the reason; ``chance``: not every sweep does."""

    name: str
    what: str
    fill: str = FILL
    blend: str = BLEND
    rest: str = REST
    of: str = "general"
    cpu: tuple[str, str] = ("wrong_result", "")
    chance: bool = False


def _runs(condition: str) -> str:
    """Blend with a second thing to do in runs of which ``condition`` holds: ``run`` counts from 1."""
    return (
        f"const unsigned run = i == 0 ? ++{RUNS} : 0;\n"
        + BLEND
        + f"\nif (i == 0 && ({condition})) y.store(-1.0f, 0);"
    )


def _marks(condition: str) -> str:
    """The right rest, but for the marks of which ``condition`` does not hold."""
    return rest(marks=MARKS.replace("i < 4", f"i < 4 && {condition}"))


FAULTS = (
    Fault(name="none", what="nothing: the right kernel", cpu=("measured", "")),
    # -- results that are plainly wrong, and kernels that do not end well
    Fault(
        name="last_missing",
        what="the last element is not written",
        blend=BLEND.replace("if (i < n) y", "if (i + 1 < n) y"),
    ),
    Fault(
        name="shifted",
        what="every element one place further",
        blend=BLEND.replace("t + 1], i)", "t + 1], (i + 1) % n)"),
    ),
    Fault(name="nothing", what="nothing is written", blend=""),
    Fault(name="one_nan", what="one element is NaN", blend=blend(f"i == 7 ? nan() : {RIGHT}")),
    Fault(name="all_nan", what="every element is NaN", blend=blend("nan()")),
    Fault(
        name="partial_barrier",
        what="a barrier that half of the threads skip",
        blend=BLEND.replace("__sync", "if (t < 32) __sync"),
    ),
    Fault(
        name="far_overrun",
        what="writes a gigabyte past its output",
        cpu=("crashed", "SIGSEGV"),
        blend=BLEND + "\nif (i == 5) y.store(1.0f, 1u << 28);",
    ),
    Fault(
        name="far_underrun",
        what="writes a gigabyte before its output",
        cpu=("crashed", "SIGSEGV"),
        blend=BLEND
        + "\nif (i == 5) *(reinterpret_cast<volatile float*>(y.memory.base) - (1ll << 28)) = 1.0f;",
    ),
    Fault(
        name="null_pointer",
        what="writes through a null pointer",
        cpu=("crashed", "SIGSEGV"),
        blend=BLEND
        + """
if (i == 5) *reinterpret_cast<volatile int*>(static_cast<unsigned long long>(n - SIZE)) = 1;""",
    ),
    Fault(
        name="trap", what="traps", cpu=("launch_failed", "trapped"), blend=BLEND + "\nif (i == 5) __trap();"
    ),
    Fault(
        name="leaves",
        what="ends its process (a trap on a GPU)",
        cpu=("crashed", "exit code 0"),
        blend=BLEND + "\nif (i == 5) leave();",
    ),
    Fault(
        name="endless",
        what="never ends",
        cpu=("timed_out", "no end within"),
        blend=BLEND + "\nwhile (n != 1) idle();",
    ),
    Fault(
        name="deep",
        what="needs more stack than there is",
        cpu=("crashed", "SIGSEGV"),
        blend=BLEND + "\nif (i == 5) y.store(deep(static_cast<int>(n) * 1000), 5);",
    ),
    # -- outside of arrays
    Fault(
        name="past_output",
        what="writes one element past an output",
        blend=BLEND + "\nif (i == 0) y.store(1.0f, n);",
    ),
    Fault(
        name="past_output_16",
        what="writes 16 elements past an output",
        blend=BLEND + "\nif (i < 16) y.store(1.0f, n + i);",
    ),
    Fault(
        name="before_output",
        what="writes one element before an output",
        blend=BLEND + "\nif (i == 0) reinterpret_cast<volatile float*>(y.memory.base)[-1] = 1.0f;",
    ),
    Fault(
        name="past_scratch",
        what="writes one element past a scratch array",
        fill=FILL + "\nif (i == 0) s.store(1.0f, n);",
    ),
    Fault(
        name="past_scratch_16",
        what="writes 16 elements past a scratch array",
        fill=FILL + "\nif (i < 16) s.store(1.0f, n + i);",
    ),
    Fault(
        name="past_input",
        what="writes one element past an input",
        fill=FILL + "\nif (i == 0) const_cast<float&>(autotune::element(x, n)) = 1.0f;",
    ),
    Fault(
        name="read_past_input",
        what="reads one element past an input and uses it",
        blend=blend(f"{RIGHT} + x.load(n)"),
    ),
    Fault(
        name="read_before_input",
        what="reads one element before an input and uses it",
        blend=blend(f"{RIGHT} + reinterpret_cast<const float*>(x.memory.base)[-1]"),
    ),
    Fault(
        name="read_past_constant",
        what="reads past an array in constant memory and uses it",
        blend=blend(f"{RIGHT} + w.load(8)"),
    ),
    Fault(
        name="into_padding",
        what="writes into the padding of its own rows",
        cpu=("measured", ""),
        rest=rest(rows=ROWS + "\nif (i < 7) rows.store(1.0f, i, 6);"),
    ),
    Fault(
        name="read_padding",
        what="reads the padding of rows and uses it",
        blend=blend(f"{RIGHT} + columns.load(i % 7, 6)"),
    ),
    # -- what nobody wrote
    Fault(name="unwritten_zero", what="an integer 0 that nobody writes", rest=_marks("i != 0")),
    Fault(name="unwritten_ones", what="an integer of set bits that nobody writes", rest=_marks("i != 1")),
    Fault(name="unwritten_a5", what="an integer 0xA5A5A5A5 that nobody writes", rest=_marks("i != 2")),
    Fault(
        name="unwritten_small",
        what="a float 0 that nobody writes, compared with an absolute tolerance",
        rest=rest(zeros="if (i < 4 && i != 1) zeros.store(0.0f, i);"),
    ),
    Fault(
        name="unwritten_later",
        what="written by the first call only",
        rest=f"const bool first = i != 1 || ++{RUNS} == 1;\n" + _marks("first"),
    ),
    Fault(
        name="unwritten_scratch",
        what="scratch that nobody writes, taken for zero",
        blend=blend(f"{RIGHT} + q.load(i)"),
    ),
    Fault(
        name="added_single",
        what="a float32 output that is added to and never cleared",
        rest=rest(sums=SUMS.replace("single.store", "single.add")),
    ),
    Fault(
        name="added_double",
        what="a float64 output that is added to and never cleared",
        rest=rest(sums=SUMS.replace("twice.store", "twice.add")),
    ),
    Fault(
        name="reads_output",
        what="reads its output before it writes it",
        blend=blend(f"{RIGHT} + 0.0f * y.load(i)"),
    ),
    Fault(
        name="shared_sum",
        what="a sum in shared memory that nobody clears",
        blend="__shared__ float total;\nif (t == 0) total += 1.0f;\n" + blend(f"{RIGHT} + (total - 1.0f)"),
    ),
    Fault(
        name="shared_read",
        what="shared memory that nobody writes at all, taken for zero",
        blend="__shared__ float never[BLOCK];\n" + blend(f"{RIGHT} + never[t]"),
    ),
    Fault(
        name="dynamic_shared",
        what="dynamic shared memory that nobody writes, taken for zero",
        blend=blend(f"{RIGHT} + autotune::dynamic_shared<float>()[t]"),
    ),
    # -- calls that are not alike
    Fault(
        name="kept_scratch",
        what="scratch that only the first call writes",
        fill=f"if (i == 0) ++{RUNS};\n" + FILL.replace("i < n", f"i < n && {RUNS} < 2"),
    ),
    Fault(
        name="ticket",
        what="a counter in scratch that no call clears",
        rest=rest(
            marks="""auto* const ticket = reinterpret_cast<unsigned*>(tickets.memory.base);
if (t == 0 && atomicAdd(ticket, 1u) == gridDim.x - 1)
  for (unsigned j = 0; j < 4; ++j) marks.store(mark(j), j);"""
        ),
    ),
    Fault(name="second_call", what="wrong from the second call on", blend=_runs("run > 1")),
    Fault(name="alone", what="the same, in a space of one configuration", blend=_runs("run > 1"), of="alone"),
    Fault(
        name="once_in_3", what="a lost update in every third run", blend=_runs("run % 3 == 0"), chance=True
    ),
    Fault(
        name="once_in_50",
        what="a lost update in every fiftieth run",
        blend=_runs("run % 50 == 0"),
        chance=True,
    ),
    Fault(
        name="writes_input",
        what="writes its input",
        blend=BLEND + "\nif (i < n) const_cast<float&>(autotune::element(x, i)) = 0.0f;",
    ),
    # -- an order that nothing promises
    Fault(
        name="no_barrier",
        what="a missing barrier between neighbours",
        blend=BLEND.replace("__syncthreads();", ""),
    ),
    Fault(
        name="lock_step",
        what="lanes of a warp taken to run in step",
        blend=TILE.replace("tile[BLOCK + 1];", "tile[BLOCK + 1], lane[BLOCK];")
        + """__syncthreads();
lane[t] = tile[t + 1];
if (i < n) y.store((t % 32 ? lane[t - 1] : tile[t]) + lane[t], i);""",
    ),
    Fault(
        name="block_order",
        what="a block that reads what the one before it wrote",
        blend=TILE
        + f"""__syncthreads();
if (i < n) y.store(t == 0 && i > 0 ? carried.load(blockIdx.x - 1) + tile[t + 1] : {RIGHT}, i);
if (t == BLOCK - 1) carried.store(tile[t + 1], blockIdx.x);""",
    ),
    Fault(
        name="two_writers",
        what="two blocks write one element, the last one right",
        blend=BLEND + "\nif (i + BLOCK < n) y.store(-1.0f, i + BLOCK);",
    ),
    Fault(
        name="lost_updates",
        what="counts that are not atomic",
        rest=rest(counts="if (i < n) counts.store(counts.load(k.load(i)) + 1, k.load(i));"),
        chance=True,
    ),
    Fault(
        name="lost_between_blocks",
        what="sums of blocks added to one place, not atomically",
        rest=rest(
            counts="""__shared__ int found[8];
if (t < 8) found[t] = 0;
__syncthreads();
if (i < n) atomicAdd(&found[k.load(i)], 1);
__syncthreads();
if (t < 8) counts.store(counts.load(t) + found[t], t);"""
        ),
        chance=True,
    ),
    # -- right for the swept sizes
    Fault(
        name="multiples",
        what="the last partial block is left out",
        of="multiples",
        cpu=("wrong_result", "right for the swept sizes"),
        chance=True,
        blend=BLEND.replace("if (i < n) y", "if (i < n / BLOCK * BLOCK) y"),
    ),
    Fault(
        name="no_bound",
        what="no bound at all",
        of="multiples",
        cpu=("wrong_result", "writes outside of"),
        chance=True,
        fill=FILL.replace("if (i < n) ", ""),
        blend=BLEND.replace("if (i < n) y", "y"),
    ),
    Fault(
        name="last_tile",
        what="the last partial tile ends one element early",
        of="multiples",
        cpu=("wrong_result", "right for the swept sizes"),
        chance=True,
        blend=BLEND.replace("if (i < n) y", "if (i < n - (n % BLOCK != 0)) y"),
    ),
    Fault(
        name="grid_size",
        what="takes the grid's size for the array's",
        of="multiples",
        cpu=("wrong_result", "right for the swept sizes"),
        chance=True,
        blend=BLEND.replace("if (i < n) y", "if (i < gridDim.x * BLOCK) y"),
    ),
    Fault(
        name="narrow_index",
        what="an index in 16 bits, which larger arrays than the swept one need more for",
        of="multiples",
        cpu=("wrong_result", "wrong for n=65537"),
        chance=True,
        blend=BLEND.replace("t + 1], i)", "t + 1], static_cast<unsigned short>(i))"),
    ),
    # -- a reference that proves nothing
    Fault(
        name="nan_reference",
        what="a reference that is NaN throughout",
        of="no_number",
        blend=blend("nan()"),
        cpu=("exit 3", "y has no finite value"),
    ),
    # -- what counts as right
    Fault(
        name="minus_zero",
        what="-0.0 where 0.0 is expected: they are equal",
        cpu=("measured", ""),
        rest=rest(zeros="if (i < 4) zeros.store(-0.0f, i);"),
    ),
    Fault(
        name="within_tolerance",
        what="off by less than the family's tolerance",
        cpu=("measured", ""),
        blend=blend(f"{RIGHT} + 1e-7f"),
    ),
    # -- each would win
    *(Fault(name=one.name, what=one.what, of="wins", cpu=one.cpu) for one in planted_winners.PLANTED),
)

_FAMILY = """\
schema: 1
family: {family}
title: faults planted in a kernel that is right
source: planted.cu
default_workload: small
extents:
  eight: {{value: 8}}
  four: {{value: 4}}
  seven: {{value: 7}}
  five: {{value: 5}}
  one: {{value: 1}}
data:
  x: {{role: input, type: float32, shape: [n]}}
  k: {{role: input, type: int32, shape: [n]}}
  w: {{role: input, type: float32, shape: [eight]}}
  columns: {{role: input, type: float32, shape: [seven, five]}}
  s: {{role: scratch, type: float32, shape: [n]}}
  q: {{role: scratch, type: float32, shape: [n]}}
  carried: {{role: scratch, type: float32, shape: [n]}}
  tickets: {{role: scratch, type: int32, shape: [one]}}
  y: {{role: output, type: float32, shape: [n]}}
  counts: {{role: output, type: int32, shape: [eight], zero: "1"}}
  single: {{role: output, type: float32, shape: [n]}}
  twice: {{role: output, type: float64, shape: [n]}}
  marks: {{role: output, type: int32, shape: [four]}}
  zeros: {{role: output, type: float32, shape: [four]}}
  rows: {{role: output, type: float32, shape: [seven, five]}}
kernels:
  fill: {{arguments: [x, s], grid: ["ceil_div(n, 64)"], block: [64]}}
  blend:
    arguments: [x, w, columns, s, q, carried, y]
    grid: ["ceil_div(n, 64)"]
    block: [64]
    shared_bytes: 256
  rest:
    arguments: [x, k, w, tickets, counts, single, twice, marks, zeros, rows]
    grid: ["ceil_div(n, 64)"]
    block: [64]
policies:
  fault: {{values: [{values}], default: {default}}}
  w_memory: {{layout: memory, data: [w], values: [constant], default: constant}}
  row_padding: {{layout: padding, data: [columns, rows], values: [8], default: 8}}
tolerance: {{relative: 0.00001, absolute: 0.000001}}
"""
_PYTHON = """\
import numpy as np


def reference(arrays, _options):
    x = arrays["x"]
    doubled = (2 * x).astype(np.float32)
    before = np.concatenate([[np.float32(0)], doubled[:-1]])
    marks = np.array([0, 0xFFFFFFFF, 0xA5A5A5A5, 7], np.uint32).view(np.int32)
    return {{
        "y": {y},
        "counts": np.bincount(arrays["k"], minlength=8).astype(np.int32),
        "single": doubled,
        "twice": 2.0 * x.astype(np.float64),
        "marks": marks,
        "zeros": np.zeros(4, np.float32),
        "rows": np.tile(arrays["w"][:5], (7, 1)),
    }}
"""
_SOURCE = """\
#include "autotune/element.cuh"
#include "autotune/shared.cuh"

enum class Fault {{ {values} }};
constexpr unsigned BLOCK = 64, SIZE = {n};
__device__ unsigned runs[{count}];

AUTOTUNE_DEVICE float nan() {{ return autotune::bit_cast<float>(0x7fc00000u); }}

AUTOTUNE_DEVICE int mark(unsigned i) {{
  return i == 0 ? 0 : i == 1 ? -1 : i == 2 ? static_cast<int>(0xA5A5A5A5u) : 7;
}}

AUTOTUNE_DEVICE void leave() {{
#ifdef AUTOTUNE_CPU
  exit(0);
#else
  __trap();
#endif
}}

// A loop without effect may be left out; on a cpu others need the processor.
#ifdef AUTOTUNE_CPU
extern "C" int usleep(unsigned);
inline void idle() {{ usleep(1000); }}
inline __noinline__ float deep(int left) {{
#else
__device__ inline void idle() {{ asm volatile("" ::: "memory"); }}
__device__ __noinline__ float deep(int left) {{
#endif
  volatile float room[64];
  room[left % 64] = 1.0f;
  return left > 0 ? deep(left - 1) + room[left % 64] : 0.0f;
}}

template <class Policy>
__global__ void fill(typename Policy::x x, typename Policy::s s) {{
  const unsigned t = threadIdx.x, i = blockIdx.x * BLOCK + t, n = x.extent(0);
{fill}
}}

template <class Policy>
__global__ void blend(typename Policy::x x, typename Policy::w w, typename Policy::columns columns,
                      typename Policy::s s, typename Policy::q q, typename Policy::carried carried,
                      typename Policy::y y) {{
  const unsigned t = threadIdx.x, i = blockIdx.x * BLOCK + t, n = x.extent(0);
{blend}
}}

template <class Policy>
__global__ void rest(typename Policy::x x, typename Policy::k k, typename Policy::w w, typename Policy::tickets tickets,
                     typename Policy::counts counts, typename Policy::single single, typename Policy::twice twice,
                     typename Policy::marks marks, typename Policy::zeros zeros, typename Policy::rows rows) {{
  const unsigned t = threadIdx.x, i = blockIdx.x * BLOCK + t, n = x.extent(0);
{rest}
}}
"""
_WORKLOAD = """\
schema: 1
workload: small
family: {family}
arrays:
  x: {{random: uniform, shape: [{n}], seed: 1}}
  k: {{random: integers, shape: [{n}], low: 0, high: 7, seed: 2}}
  w: {{random: uniform, shape: [8], seed: 3}}
  columns: {{random: uniform, shape: [7, 5], seed: 4}}
"""
# Runs of milliseconds: a shorter one may look hopeless on a busy machine, and is then verified once only.
SIZES = {
    "general": 60000,
    "multiples": 65536,
    "alone": 60000,
    "no_number": 60000,
    "wins": planted_winners.SIZE,
}


def _faults(of: str) -> list[Fault]:
    """Those planted in a family, the right kernel first where it has a place."""
    planted = [fault for fault in FAULTS if fault.of == of and fault.name != "none"]
    return planted if of in ("alone", "no_number", "wins") else [FAULTS[0], *planted]


def _body(faults: Sequence[Fault], part: str, right: str) -> str:
    cases = [
        f"if constexpr (Policy::fault == Fault::{fault.name}) {{\n{getattr(fault, part)}\n}} else "
        for fault in faults
        if getattr(fault, part) != right
    ]
    return f"{''.join(cases)}{{\n{right}\n}}"


def families(folder: Path) -> dict[str, Path]:
    """Write each family into ``folder``: its name and its own folder."""
    made = {}
    for of, n in SIZES.items():
        faults, home = _faults(of), folder / of
        made[of] = home
        if of == "wins":
            planted_winners.write(home, of)
            continue
        names = ", ".join(fault.name for fault in faults)
        (home / "workloads").mkdir(parents=True)
        (home / "family.yaml").write_text(_FAMILY.format(family=of, values=names, default=faults[0].name))
        y = "np.full(x.size, np.nan, np.float32)" if of == "no_number" else "doubled + before"
        (home / "family.py").write_text(_PYTHON.format(y=y))
        (home / "workloads" / "small.yaml").write_text(_WORKLOAD.format(family=of, n=n))
        bodies = {
            part: _body(faults, part, right)
            for part, right in (("fill", FILL), ("blend", BLEND), ("rest", REST))
        }
        (home / "planted.cu").write_text(_SOURCE.format(values=names, count=len(faults), n=n, **bodies))
    return made


@dataclass(frozen=True)
class Seen:
    """What a sweep said of a fault; whether it was too slow at its first run to be verified again or chosen; whether
    it is what the policy file holds."""

    state: str
    reason: str
    is_hopeless: bool = False
    wins: bool = False


def sweep_all(made: dict[str, Path], device: str, out: Path, which: Iterable[str] = SIZES) -> dict[str, Seen]:
    """One sweep of each family: what it says of each fault. ``out`` is a new folder."""
    seen: dict[str, Seen] = {}
    for of in which:
        seconds = "20" if of == "wins" else "2"  # nothing there is endless
        places = ["--out", str(out / of), "--policies", str(out / "policies")]
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(["sweep", str(made[of]), "--device", device, "--trial-seconds", seconds, *places])
        results = out / of / "results.csv"
        if not results.is_file():
            seen |= {fault.name: Seen(f"exit {code}", said.getvalue()) for fault in _faults(of)}
            continue
        frame = pd.read_csv(results, keep_default_na=False)
        entries = [e for path in (out / "policies" / of).glob("*.yaml") for e in read(path).entries.values()]
        winners = {entry.configuration["fault"] for entry in entries}
        for row in frame.itertuples():
            now = Seen(row.state, row.reason, str(row.abandoned) == "True", row.fault in winners)
            before = seen.get(row.fault, now)  # the right kernel has a place in two families
            seen[row.fault] = now if before.state == "measured" else before
    return seen
