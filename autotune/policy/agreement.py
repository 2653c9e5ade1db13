"""What the ranks of one program must have alike, so that they choose alike: digests to compare, and one who decides.

Ranks talk by a ``Gather``: a function that every rank calls with a value and that gives each the values of all, in the
order of the ranks. ``mpi4py``'s ``comm.allgather`` is one, ``autotune.torch.gather`` another.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from secrets import token_hex
from typing import Any, TypeVar

from autotune import __version__
from autotune.declaration import Family
from autotune.errors import AutotuneError, DeviceError, UsageError
from autotune.files import pip_install
from autotune.layout import layouts_digest
from autotune.policy.acceptance import stale
from autotune.policy.file import PolicyFile, content
from autotune.policy.selection import Policies, candidates
from autotune.processes import Failure

Gather = Callable[[Any], Sequence[Any]]
_Decided = TypeVar("_Decided")


def find_rank(gather: Gather) -> int:
    """The number of this rank."""
    own = token_hex(16)
    return list(gather(own)).index(own)


def decide_first(gather: Gather, decide: Callable[[], _Decided]) -> _Decided:
    """What ``decide`` gives on the first rank, on all of them; it is called nowhere else. What it raises is raised on
    all, with AutotuneError's exit code."""
    outcome: Any = None
    if find_rank(gather) == 0:
        try:
            outcome = decide()
        except AutotuneError as problem:
            outcome = Failure.of(problem)
    outcome = gather(outcome)[0]
    if isinstance(outcome, Failure):
        raise outcome.error()
    found: _Decided = outcome
    return found


def digest_code(family: Family) -> dict[str, str]:
    """By what it is of: all that decides what a configuration does and which ones there are."""
    return {
        "autotune": __version__, "kernel source": family.source_digest,
        "layouts": layouts_digest(), "space": family.space_digest,
    }  # fmt: skip


def digest_file(file: PolicyFile) -> str:
    """Of what a policy file says, wherever it lies and however it is written."""
    return _digest(content(file))


def digest_choices(family: Family, file: PolicyFile) -> str:
    """Of what is chosen by ``file`` for its entries' inputs and for inputs twice and half as large, each a guess where
    no entry knows it."""
    policies = Policies(file.device, file)
    found = []
    for item in (item for item in file.entries.values() if not stale(family, item)):
        asked = {name: item.configuration[name] for name in family.accuracy if name in item.configuration}
        for double in (2, 4, 1):  # halves of a feature
            numbers = {name: max(1, value * double // 2) for name, value in item.features.items()}
            listed = candidates(
                family, policies, numbers, item.options, accuracy=asked, objective=item.objective
            )
            first = next(c for c in listed if not c.refusal and c.configuration is not None)
            assert first.configuration is not None
            found.append((item.name, double, first.match, first.configuration.id))
    return _digest(sorted(found))


def _digest(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def compare_digests(of_ranks: Sequence[Mapping[str, str]]) -> list[str]:
    """What differs between the ranks, a line for each name: who has what. Empty where all are equal."""
    lines = []
    for name in dict.fromkeys(name for one in of_ranks for name in one):
        ranks: dict[str, list[str]] = {}
        for number, one in enumerate(of_ranks):
            ranks.setdefault(one.get(name, "nothing"), []).append(str(number))
        if len(ranks) > 1:
            told = "; ".join(f"{value} on rank {', '.join(numbers)}" for value, numbers in ranks.items())
            lines.append(f"{name}: {told}")
    return lines


def require_equal(gather: Gather, digests: Mapping[str, str], what: str) -> None:
    """Raise UsageError on every rank where the ``digests`` differ, with what each has."""
    if lines := compare_digests(gather(dict(digests))):
        raise UsageError(
            f"{what} is not the same on all ranks: {'. '.join(lines)}. Install one version everywhere, and run "
            "`autotune check --ranks` as this program is run"
        )


def mpi() -> Any:
    """mpi4py's MPI. Raises DeviceError where there is none."""
    try:
        from mpi4py import MPI
    except ImportError:
        raise DeviceError(
            f"several ranks need mpi4py, which is not installed; {pip_install('mpi')}"
        ) from None
    except RuntimeError as problem:  # it looks for an MPI library, and says where
        told = next((line for line in str(problem).splitlines() if line), "")
        raise DeviceError(
            f"mpi4py found no MPI library ({told}); load the cluster's module, or pip install mpich"
        ) from None
    return MPI
