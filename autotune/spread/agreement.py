"""Ranks of one program that choose alike: the first one decides, and what has to be equal on all is compared.

Ranks talk by a function that every rank calls with a value and that gives each the values of all, in the order of the
ranks: mpi4py's ``comm.allgather`` is one.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from rich.console import Console

from autotune import __version__
from autotune.declaration import Family, load_family
from autotune.errors import AutotuneError, PolicyFileError, UsageError
from autotune.hardware import Device
from autotune.layout import layouts_digest
from autotune.policy import Policies, PolicyFile, acceptance, candidates, content, read_policy_file
from autotune.processes import Failure
from autotune.spread.ranks import mpi

_Decided = TypeVar("_Decided")


@dataclass(frozen=True)
class Agreement:
    """The ranks of a program, for ``load(agreement=...)`` and for decorated functions.

    Args:
        gather: gives each rank the values of all: mpi4py's ``comm.allgather``, or what does the same.
    """

    gather: Callable[[Any], Sequence[Any]]

    @classmethod
    def of_torch(cls) -> "Agreement":
        """The ranks of torch.distributed's default group. Its first use raises UsageError where there is none yet."""
        return cls(_gather_torch)

    @property
    def rank(self) -> int:
        """The number of this rank. All ranks ask together."""
        own = token_hex(16)
        return list(self.gather(own)).index(own)

    def decide(self, decide: Callable[[], _Decided]) -> _Decided:
        """What ``decide`` gives on the first rank, on all of them; it is called nowhere else. An AutotuneError there is
        raised on all."""
        outcome = self.gather(_attempt(decide) if self.rank == 0 else None)[0]
        if isinstance(outcome, Failure):
            raise outcome.error()
        found: _Decided = outcome
        return found

    def find(self, family: Family, device: Device, search: Callable[[], _Decided]) -> _Decided:
        """The policy files that ``search`` finds on the first rank. Raises UsageError where the ranks' code or devices
        differ."""
        self.require_equal({**digest_code(family), "device": device.slug}, family.name)
        return self.decide(search)

    def require_equal(self, digests: Mapping[str, str], what: str) -> None:
        """Raise UsageError on every rank where the ``digests`` differ, with what each has."""
        if lines := compare_digests(self.gather(dict(digests))):
            raise UsageError(
                f"{what} is not the same on all ranks: {'. '.join(lines)}. Install one version everywhere, and run "
                "`autotune check --ranks` as this program is run"
            )


def _attempt(work: Callable[[], Any]) -> Any:
    """What ``work`` gives, or the Failure that its AutotuneError is sent as."""
    try:
        return work()
    except AutotuneError as problem:
        return Failure.make(problem)


def _gather_torch(value: Any) -> list[Any]:
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        raise UsageError("ranks have no group yet: call torch.distributed.init_process_group first")
    found: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, value)
    return found


def digest_code(family: Family) -> dict[str, str]:
    """By what it is of: all that decides which configurations there are, and what one does."""
    return {
        "autotune": __version__, "kernel source": family.source_digest,
        "layouts": layouts_digest(), "space": family.space_digest,
    }  # fmt: skip


def digest_choices(family: Family, file: PolicyFile) -> str:
    """Of what is chosen by ``file`` for its entries' inputs and for inputs twice and half as large, each a guess where
    no entry knows it."""
    policies = Policies(file.device, file)
    found = []
    for item in (item for item in file.entries.values() if not acceptance.describe_staleness(family, item)):
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


def digest_file(file: PolicyFile) -> str:
    """Return a digest of a policy file's content, which neither its path nor its formatting changes."""
    return _digest(content(file))


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


# -- autotune check --ranks -------------------------------------------------------------------------------------


def check_ranks(files: Callable[[], Sequence[Path]], families: Sequence[str], out: Console) -> None:
    """Compare policy files, code and choices over the ranks of mpiexec, srun or torchrun. Raises DeviceError,
    PolicyFileError."""
    with _agreement() as agreement:
        compare_ranks(agreement, lambda: digests_of(files(), families), out)


def compare_ranks(agreement: Agreement, digests: Callable[[], Mapping[str, str]], out: Console) -> None:
    """Print on the first rank whether all have the same ``digests``. Raises on every rank what one of them raises, and
    PolicyFileError where something differs."""
    outcome = _attempt(lambda: dict(digests()))
    is_first, of_ranks = agreement.rank == 0, agreement.gather(outcome)
    for number, one in enumerate(of_ranks):
        if isinstance(one, Failure):
            raise Failure(one.kind, f"rank {number}: {one.text}").error()
    lines = compare_digests(of_ranks)
    for name, value in of_ranks[0].items() if is_first else ():
        if not any(line.startswith(f"{name}: ") for line in lines):
            out.print(f"equal     {name}: {value}")
    for line in lines if is_first else ():
        out.print(f"differs   {line}")
    if lines:
        raise PolicyFileError(
            f"{len(lines)} of {len(set().union(*of_ranks))} digests differ over {len(of_ranks)} ranks: copy one "
            "folder of policy files to all hosts (--policies), and install one version of autotune"
        )


def digests_of(files: Sequence[Path], families: Sequence[str]) -> dict[str, str]:
    """Of each policy file, of the code of its family, and of what is chosen by it. Raises AutotuneError."""
    found: dict[str, str] = {}
    given = {family.name: family for family in map(load_family, families)}
    for path in files:
        file = read_policy_file(path)
        family = given.get(file.family) or load_family(file.family)
        found |= {f"{family.name}, {what}": digest for what, digest in digest_code(family).items()}
        name = f"{file.family}/{path.name}"
        found |= {name: digest_file(file), f"{name}, choices": digest_choices(family, file)}
    return found


@contextmanager
def _agreement() -> Iterator[Agreement]:
    """The ranks that this process was started among: by torchrun, else by MPI. Raises DeviceError."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield Agreement(mpi().COMM_WORLD.allgather)
        return
    from torch import distributed

    distributed.init_process_group("gloo")
    try:
        yield Agreement.of_torch()
    finally:
        distributed.destroy_process_group()
