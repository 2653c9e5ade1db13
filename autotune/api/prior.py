"""What a sweep begins from: times of other devices, out of records and policy files; and what these say alone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from autotune.declaration import Configuration, Family
from autotune.engine import Elsewhere, SweepRequest
from autotune.errors import AutotuneError, UsageError
from autotune.policy import read_policy_file
from autotune.record import read_first_guesses, read_record
from autotune.search import FIVE, Prior


def read_prior(request: SweepRequest) -> tuple[Elsewhere, ...]:
    """Read what ``--from`` names, as far as it is of configurations of the family's space.

    Args:
        request: a sweep as asked for.

    Returns:
        For each workload in each record: its name, and milliseconds by configuration.

    Raises:
        StoreError, PolicyFileError: what is named is no record and no policy file.
        UsageError: it has no configuration of this family.
    """
    found: list[Elsewhere] = []
    for source in request.prior:
        fitting = [(name, _of_space(request.family, times)) for name, times in _read(request.family, source)]
        if not any(times for _, times in fitting):
            raise UsageError(
                f"--from {source} has no measured configuration of {request.family.name}: name a record of this "
                "family, or one of its policy files"
            )
        found += [one for one in fitting if one[1]]
    return tuple(found)


def name_five(
    request: SweepRequest, workload: str, elsewhere: Sequence[Elsewhere]
) -> tuple[str, tuple[Configuration, ...]]:
    """Name the five configurations that should be fastest on a workload, best first, with nothing measured: by the
    ``records`` of other devices, which ``read_prior`` gives, else by the ``ranking`` of a static pass in the same
    folder; which of the two is returned first. Raises UsageError where there is neither."""
    family = request.family
    known = [times for of, times in elsewhere if of == workload] or [times for _, times in elsewhere]
    if prior := Prior(known):
        members = request.configurations or list(dict.fromkeys(one for times in known for one in times))
        return "records", tuple(prior.rank(members)[:FIVE])
    if five := read_first_guesses(request.folder, family, workload, FIVE):
        return "ranking", tuple(five)
    raise UsageError(
        f"nothing says which configurations of {family.name} are fast on {workload}: name a record of another device "
        f"with --from, or rank them: autotune rank {family.name} --workload {workload}"
    )


def _read(family: Family, source: str) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Of each workload its name, and milliseconds by the ids of configurations."""
    if not source.endswith((".yaml", ".yml")):
        for study in read_record(source):
            yield study.workload, {one.id: ms for one, ms in study.comparable.items()}
        return
    file = read_policy_file(Path(source))
    kept = file.prediction.kept if file.prediction else {}
    for entry in file.entries.values() if file.family == family.name else ():
        found = [(kept[name].configuration, ms) for name, ms in entry.times_ms.items() if name in kept]
        found.append((entry.configuration, entry.median_ms))
        yield entry.workload, {Configuration(values).id: ms for values, ms in found}


def _of_space(family: Family, times: Mapping[str, float]) -> dict[Configuration, float]:
    found = {}
    for one, ms in times.items():
        with suppress(AutotuneError):  # of an older space, or of another family
            found[family.space.configuration(one)] = ms
    return found
