"""``autotune pull``: a policy file from a registry, checked, proved on this machine, and put where programs look."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autotune.declaration import Configuration, Family, load_family, load_workload, prepare
from autotune.device import device_names
from autotune.engine import launch_workers, open_devices, prove_configurations
from autotune.errors import PolicyFileError, UsageError
from autotune.files import data_root, own_policies, policy_folders
from autotune.hardware import Device
from autotune.measure import PROOF_VERSION
from autotune.policy import PolicyFile, acceptance, file_name, file_of, lock, read_policy_file, write
from autotune.record import Trial
from autotune.registry.checking import check_file, complete, other_configurations
from autotune.registry.index import (
    MOST_BYTES,
    Index,
    Listing,
    device_key,
    index_path,
    read_index,
    read_listed,
)
from autotune.registry.source import NotThere, Source, open_source

Note = Callable[[str], None]
_TRIAL_S = 120.0  # that a configuration may run
_READINGS = 3  # of an index that changes while it is read
_SHOWN = 5  # listings that a message gives reasons for


@dataclass(frozen=True)
class Pulled:
    """The policy file at ``path``, as ``listing`` describes it in the registry. ``failures`` has why a configuration
    of it is not used here, by its id. ``is_new`` unless it was there already, proved as it would be now."""

    path: Path
    listing: Listing
    failures: Mapping[str, str]
    is_new: bool = True


def pull(
    family: str | os.PathLike[str], registry: str | os.PathLike[str] | None = None, *, device: str = "auto",
    policies: str | Path | None = None, workload: str = "", data: str | Path | None = None,
    replace: bool = False, note: Note = lambda line: None,
) -> Pulled:  # fmt: skip
    """Take the policy file that a registry has for a family on this machine's device.

    Every configuration in it is run here and compared with the family's reference, as a sweep does with its winners,
    before a program can find it. What fails is left out. Nothing of the registry is run.

    Args:
        family: A name, or a folder with a family.yaml; its code is what is on this machine.
        registry: A folder, https://HOST/PATH, or a git repository as git+https://…; default AUTOTUNE_REGISTRY.
        device: What proves it: auto, cpu, cuda or cuda:N.
        policies: Where the file goes; default AUTOTUNE_POLICIES, else the user's own folder, which every program reads.
        workload: What it is proved on; default the family's own workload.
        data: Where workloads find their data.
        replace: Replace a policy file that was measured here, or that cannot be read.
        note: Called with each line that a person should see.

    Raises:
        UsageError: No registry is named, or the address is none.
        StoreError: The registry cannot be read.
        PolicyFileError: It has nothing for this device and these sources, or what it has is not in order.
        AutotuneError: Family, workload or device cannot be used.
    """
    loaded = load_family(family)
    address = os.fspath(registry or os.environ.get("AUTOTUNE_REGISTRY") or "")
    if not address:
        raise UsageError(
            "no registry is named: write --from FOLDER or --from https://…, or set AUTOTUNE_REGISTRY"
        )
    asked = load_workload(loaded, workload)
    inputs = prepare(loaded, asked, data_root(data))
    folder = Path(policies or os.environ.get("AUTOTUNE_POLICIES") or own_policies())
    with open_source(address) as source:
        content = source.read(index_path(loaded.name), MOST_BYTES)
        with launch_workers(device_names(device)[:1], "", _TRIAL_S) as workers:
            open_devices(workers, "")
            (worker,) = workers
            listing, file = _take(source, content, loaded, worker.device)
            path = folder / file_name(loaded.name, listing.slug)
            mark = {
                "from": source.name, "sha256": listing.sha256, "by": listing.by, "device": worker.device.name,
                "driver": worker.device.driver, "compiler": worker.toolchain.identity,
            }  # fmt: skip
            if not replace and (date := _find_proof(path, mark)):
                note(f"{path} is there already, and was proved here on {date}")
                return Pulled(path, listing, {}, is_new=False)
            configurations = [complete(loaded, item.configuration) for item in file.entries.values()]
            configurations += [complete(loaded, values) for values in other_configurations(file).values()]
            note(f"{listing}, from {source.name}; it is proved on {asked.name} and on sizes near it")
            distinct = dict.fromkeys(configurations)
            trials = prove_configurations(loaded, asked, inputs, data_root(data), distinct, worker)
    mark["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    known = {trial.configuration: trial for trial in trials}
    right = _select_right(loaded, file, known, mark)
    with lock(path) as real:
        if not replace:
            _find_proof(real, mark)  # a sweep may have ended meanwhile
        write(real, right)
    failures = {t.configuration.id: f"{t.state}: {t.reason}" for t in trials if t.state != "measured"}
    note(f"proved here: {len(trials) - len(failures)} of {len(trials)} configurations")
    for name, why in failures.items():
        note(f"not used: {name}: {why}")
    note(f"policy file  {path}")
    if (first := file_of(loaded, listing.slug, policy_folders(policies, loaded.folder))) and first != path:
        note(f"programs use {first}, which is found before it")
    return Pulled(path, listing, failures)


def _take(source: Source, content: bytes, family: Family, device: Device) -> tuple[Listing, PolicyFile]:
    """The listing for ``device`` in the index that ``content`` is, and its file, checked. Where the file is not the one
    that is listed, and the index is another by now, that one is read."""
    for left in reversed(range(_READINGS)):
        index = read_index(content, family.name, f"{source.name}/{index_path(family.name)}")
        listing = _choose(index, family, device, source.name)
        where = f"{family.name}/{listing.path}"
        try:
            file = read_listed(source.read(where, MOST_BYTES), listing, f"{source.name}/{where}")
        except (NotThere, PolicyFileError):
            before, content = content, source.read(index_path(family.name), MOST_BYTES)
            if not left or content == before:
                raise
        else:
            check_file(family, file, f"{source.name}/{where}")
            return listing, file
    raise AssertionError("the last reading returns or raises")


def _choose(index: Index, family: Family, device: Device, where: str) -> Listing:
    """The listing of the device itself, else the newest of one of its compute capability. Raises PolicyFileError."""
    here = (device.kind, device.name, device.compute_capability)
    refusals, alike = [], []
    for listing in index.listings:
        kind, name, capability = device_key(listing.device)
        if what := acceptance.find_change(family, listing):
            refusals.append(f"{name}: the {what} is another here than where it was measured")
        elif (kind, name, capability) == here:
            return listing
        elif kind == device.kind == "cuda" and capability == device.compute_capability:
            alike.append(listing)
        else:
            refusals.append(f"{name}: it is for {kind} {capability}".rstrip())
    if alike:
        return max(alike, key=lambda one: one.measured)
    listed = "; ".join(refusals[:_SHOWN]) or "it lists nothing"
    raise PolicyFileError(
        f"{where} has no policy file of {family.name} for {' '.join(filter(None, here))} and the sources that are here "
        f"({listed}); sweep, then push"
    )


def _find_proof(path: Path, mark: Mapping[str, str]) -> str:
    """When all that the file at ``path`` has was proved as ``mark`` says; empty where it is to be proved now. Raises
    PolicyFileError where it holds what was measured here."""
    if not path.exists():
        return ""
    try:
        entries = read_policy_file(path).entries.values()
    except PolicyFileError as problem:
        raise PolicyFileError(f"{problem}; --replace puts the pulled file in its place") from None
    if not entries or not all(item.pulled for item in entries):
        raise PolicyFileError(
            f"{path} holds what was measured here, which stays: pull into another folder with --policies, or replace "
            "it with --replace"
        )
    is_same = all(
        {**item.pulled, "date": ""} == {**mark, "date": ""} and item.proved.get("version") == PROOF_VERSION
        for item in entries
    )
    return min(item.pulled["date"] for item in entries) if is_same else ""


def _select_right(
    family: Family, file: PolicyFile, known: Mapping[Configuration, Trial], mark: Mapping[str, str]
) -> PolicyFile:
    """What of ``file`` was found to be right here, ``known`` has how; its entries marked. Raises PolicyFileError where
    none is."""
    right = {one: trial for one, trial in known.items() if trial.state == "measured"}
    against = "its own first run" if family.is_own_reference else family.reference_configuration
    entries = {}
    for name, item in file.entries.items():
        if trial := right.get(complete(family, item.configuration)):
            sizes = [dict(sorted(size.items())) for size in trial.proved]
            proved = {"sizes": sizes, "version": trial.proof, **({"against": against} if against else {})}
            entries[name] = dataclasses.replace(item, proved=proved, pulled=mark)
    if not entries:
        why = next(f"{one.id}: {t.state}: {t.reason}" for one, t in known.items() if one not in right)
        raise PolicyFileError(f"nothing of the file from {mark['from']} is right on {mark['device']}: {why}")
    others = other_configurations(file)
    is_default_right = complete(family, others.pop("default")) in right
    are_kept_right = all(complete(family, values) in right for values in others.values())
    left: dict[str, Any] = {"entries": entries}
    if not is_default_right:
        left |= {"default": dict(family.space.control), "default_regret": 0.0, "default_over": []}
    if not are_kept_right:
        left["prediction"] = None
    return dataclasses.replace(file, **left)
