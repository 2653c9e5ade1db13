"""Why a recorded configuration may not be used: for this family as it is now, on this device, for this caller.

Each function gives the reason as words for a person, or the empty string where there is none.
"""

from collections.abc import Mapping
from typing import Any

from autotune.compile import occupancy
from autotune.declaration import Configuration, Family
from autotune.errors import AutotuneError, DeviceError, UnknownName
from autotune.hardware import Device
from autotune.layout import layouts_digest
from autotune.policy.file import Entry, PolicyFile
from autotune.record import accuracy_class


def file_refusal(family: Family, file: PolicyFile, kind: str) -> str:
    """Why ``file`` as a whole is of no use for ``family`` on devices of that ``kind``; empty when it is."""
    if file.family != family.name or file.device.kind != kind:
        return f"it is for {file.family} on {file.device.kind} {file.device.name}"
    reasons = [stale(family, item) for item in file.entries.values()]
    return f"every entry is {reasons[0]}" if reasons and all(reasons) else ""


def entry_refusal(family: Family, item: Entry, device: Device) -> str:
    """Why an entry may not be used by ``family`` as it is now on ``device``, whatever the input; empty when it may."""
    return stale(family, item) or unmet_need(item.needs, device)


def unmet_need(of_kernels: Mapping[str, Mapping[str, int]], device: Device) -> str:
    """What kernels need (``Entry.needs``) and a multiprocessor of ``device`` does not have; empty when they fit."""
    for kernel, needs in of_kernels.items():
        block, shared = needs.get("block_size", 1), needs.get("shared_bytes", 0)
        limits = device.limits
        if block > limits.threads_per_block:
            return f"kernel {kernel} has blocks of {block} threads, and this device at most {limits.threads_per_block}"
        if device.kind == "cuda" and shared > limits.shared_bytes_per_block:
            most = limits.shared_bytes_per_block
            return (
                f"kernel {kernel} needs {shared} bytes of shared memory a block, and this device has {most}"
            )
        if device.kind == "cuda" and _cannot_launch(device.arch, block, needs.get("registers", 0), shared):
            registers = needs.get("registers", 0)
            return f"kernel {kernel}: {block} threads of {registers} registers do not fit a multiprocessor"
    return ""


def _cannot_launch(arch: str, block: int, registers: int, shared: int) -> bool:
    try:
        return occupancy(arch, block, registers, shared).limited_by == "launch"
    except DeviceError:  # an architecture whose limits are not known: the launch will tell
        return False


def stale(family: Family, item: Entry) -> str:
    what = changed(family, item)
    return f"stale: the {what} changed since it was measured; sweep again" if what else ""


def changed(family: Family, item: Entry) -> str:
    """What of the family is another since the entry was measured: kernel source, layouts, space; empty for nothing."""
    for what, recorded, now in (
        ("kernel source", item.source_digest, family.source_digest),
        ("layouts", item.layouts_digest, layouts_digest()),
        ("space", item.space_digest, family.space_digest),
    ):
        if recorded != now:
            return what
    return ""


def other_options(measured: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    for name, value in options.items():
        if str(measured.get(name, value)) != str(value):
            return f"measured with {name}={measured[name]}, not {value}"
    return ""


def other_accuracy(family: Family, configuration: Configuration, wanted: str) -> str:
    found = accuracy_class(configuration, family.accuracy)
    return "" if found == wanted else f"of accuracy class {found}, and {wanted} is asked for"


def known_configuration(family: Family, values: Mapping[str, Any]) -> tuple[Configuration | None, str]:
    """The configuration in today's space: a policy that did not exist then takes its default."""
    chosen = dict(family.space.control)
    try:
        for name, value in values.items():
            chosen[name] = family.space.policy(name).value(value)
    except AutotuneError as problem:
        return None, str(problem)
    configuration = Configuration(chosen)
    return configuration, family.space.exclusion(configuration)


def own_configuration(family: Family, values: Mapping[str, Any]) -> tuple[Configuration | None, str]:
    """``known_configuration``, which has to be of the family's own accuracy class."""
    configuration, reason = known_configuration(family, values)
    if configuration is not None and not reason:
        reason = other_accuracy(family, configuration, accuracy_asked(family))
    return configuration, reason


def accuracy_asked(family: Family, asked: Mapping[str, Any] | None = None) -> str:
    """The accuracy class that ``asked`` (policy -> value) names, the family's own for what it leaves out. Raises
    UnknownName for a policy that the family's ``accuracy`` does not list."""
    chosen = {name: family.space.policy(name).default for name in family.accuracy}
    for name, value in (asked or {}).items():
        if name not in chosen:
            raise UnknownName("accuracy policy", name, family.accuracy, f"family {family.name}")
        chosen[name] = family.space.policy(name).value(value)
    return accuracy_class(chosen, family.accuracy)
