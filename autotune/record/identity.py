"""What a study is: the identity that decides whether two trials are comparable, and the description that
lets a reader trust its figures."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from autotune import __version__
from autotune.declaration import Family, Inputs, Workload, find_single_presets
from autotune.files import include_dir
from autotune.hardware import Device
from autotune.layout import layouts_digest
from autotune.measure import PROOF_VERSION, Protocol
from autotune.record.provenance import Provenance
from autotune.record.study import Study


def header(
    family: Family, workload: Workload, inputs: Inputs, device: Device, compiler: str, protocol: Protocol,
    answer: str = "",
) -> Study:  # fmt: skip
    """The study of ``family`` on ``workload`` and ``device``, without its trials. ``compiler`` is the toolchain's
    identity, ``answer`` a digest of the expected outputs where a program gave them."""
    control = family.space.control
    names = inputs.names(control)
    parts = _parts(family, inputs, compiler, device, workload.cold, protocol, answer)
    about = Provenance(
        title=family.title, device_name=device.name, device_kind=device.kind, arch=device.arch,
        compute_capability=device.compute_capability, driver=device.driver, compiler=compiler, autotune=__version__,
        date=datetime.now(UTC).isoformat(timespec="seconds"), options=dict(inputs.options),
        protocol={**protocol.to_dict(), "cache": "cold" if workload.cold else "warm"}, libraries=_libraries(),
        source_digest=family.source_digest, space_digest=family.space_digest, layouts_digest=layouts_digest(),
        workload_digest=inputs.digest, features=dict(inputs.sizes), constants=tuple(sorted(family.constants)),
        scalars=dict(inputs.scalars), accuracy=tuple(family.accuracy),
        compared={name: expression.text for name, expression in family.features.items()},
        operations=family.operations.evaluate(names) if family.operations else None,
        operation_unit=family.operation_unit, bytes=family.bytes.evaluate(names) if family.bytes else None,
        needs={unit: expression.evaluate(names) for unit, expression in family.needs.items()},
        policies={
            p.name: {"values": list(p.values), "default": p.default, "layout": p.layout, "doc": p.doc}
            for p in family.space.policies
        },
    )  # fmt: skip
    return Study(
        family=family.name, workload=workload.name, device=device.slug, identity=_digest(parts), control=control,
        presets=find_single_presets(family.space), parts=parts, about=about,
    )  # fmt: skip


def _libraries() -> dict[str, str]:
    """Versions of the packages between us and the device, where they are installed."""
    versions = {}
    for name in ("numpy", "pycuda", "cuda-bindings"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _parts(
    family: Family, inputs: Inputs, compiler: str, device: Device, cold: bool, protocol: Protocol, answer: str
) -> dict[str, str]:  # fmt: skip
    """All that must match for two trials to be comparable, by the words that say what differs: digests, or short texts
    that may be shown."""
    parts = {}
    for name, (path, digest) in family.sources.items():
        whose = "library " if path.is_relative_to(include_dir()) else ""
        kind = "kernel source" if path.suffix == ".cu" else "header"
        parts[f"{whose}{kind} {name}"] = digest
    parts |= {f"family's {name}": digest for name, (_, digest) in family.host_code.items()}
    return {
        **parts,
        "layout library": layouts_digest(),
        "space": family.space_digest,
        "workload content": inputs.digest,
        **({"expected outputs": answer} if answer else {}),
        "compiler": compiler,
        "device": f"{device.name} ({device.arch}, {device.multiprocessors} multiprocessors)",
        "cache": "cold" if cold else "warm",
        "verification": str(PROOF_VERSION),
        "measurement protocol": _digest(protocol.to_dict()),
    }


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
