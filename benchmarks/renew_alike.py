"""Renew the policy entries whose machine code an edit of sources left alike.

    python benchmarks/renew_alike.py BASE [POLICY.yaml ...]

Each configuration that a policy file names (winners, ties, runners-up, defaults, those kept for prediction, control)
is compiled twice with NVRTC for the file's GPU, from the tree of the commit BASE and from this one. No GPU is needed.
Where machine code, layouts and launches of all are the same, the stale entries get the digests of this tree;
`renewed_from` keeps those of the sweep. Where one differs, the file stays as it is and the exit code is 1: the family
needs a sweep.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
DIGESTS = ("source_digest", "layouts_digest", "space_digest")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", help="the commit whose entries were measured")
    parser.add_argument(
        "policies", nargs="*", type=Path, default=sorted((HERE / "policies").glob("*/*.yaml"))
    )
    parser.add_argument("--describe", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.describe:
        (path,) = asked.policies
        json.dump(describe(path), sys.stdout)
        return 0
    paths = [path.resolve() for path in asked.policies if stale_entries(path)]
    if not paths:
        print("no entry is stale")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        subprocess.run(
            ["git", "-C", HERE, "worktree", "add", "--detach", "--quiet", before, asked.base], check=True
        )
        try:
            differing = sum(not renew(path, described(path, before), described(path, HERE)) for path in paths)
        finally:
            subprocess.run(["git", "-C", HERE, "worktree", "remove", "--force", before], check=True)
    return 1 if differing else 0


def stale_entries(path: Path) -> dict[str, Any]:
    """The entries of a policy file whose sources changed since they were measured, by name."""
    from autotune.declaration import load_family
    from autotune.policy import read_policy_file
    from autotune.policy.acceptance import changed

    file = read_policy_file(path)
    family = load_family(file.family)
    return {name: item for name, item in file.entries.items() if changed(family, item)}


def renew(path: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Renew the stale entries of one policy file, of which ``describe`` gave ``then`` and ``now``. Returns whether all
    of it is accepted afterwards."""
    from autotune.policy import read_policy_file
    from autotune.policy.file import write

    file, stale = read_policy_file(path), stale_entries(path)
    measured = {digest: {getattr(item, digest) for item in stale.values()} for digest in DIGESTS}
    if any(measured[digest] != {then["digests"][digest]} for digest in DIGESTS):
        print(f"unknown   {path}: its stale entries were not measured with the sources of that commit")
        return False
    differing = [name for name, code in then["code"].items() if now["code"].get(name) != code]
    if differing:
        print(f"differs   {path}: {len(differing)} of {len(then['code'])} configurations, {differing[0]}")
        return False
    today = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entries = {
        name: replace(
            item,
            **now["digests"],
            renewed=today,
            renewed_from=item.renewed_from
            or {"date": item.date, **{digest: getattr(item, digest) for digest in DIGESTS}},
        )
        for name, item in stale.items()
    }
    write(path, replace(file, entries={**file.entries, **entries}))
    print(f"renewed   {path}: {len(stale)} entries, {len(then['code'])} configurations alike")
    return True


def described(path: Path, tree: Path) -> dict[str, Any]:
    """What ``describe`` gives in another tree."""
    script = Path(__file__).resolve()
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, script, "-", path, "--describe"],
        env=environment, cwd=tree, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def describe(path: Path) -> dict[str, Any]:
    """The digests of the tree that runs, and of each named configuration what the device is made to do."""
    from autotune.compile import Cache, CompileFailure, Variant, batch, compile_many
    from autotune.compile.nvrtc import Nvrtc
    from autotune.compile.same_code import kernel_digests
    from autotune.declaration import load_family
    from autotune.layout import layouts_digest
    from autotune.policy import read_policy_file

    file = read_policy_file(path)
    family = load_family(file.family)
    variants: dict[str, Any] = {}
    for options, values in named(file, family):
        configuration = (
            family.space.configuration(values) if isinstance(values, str) else known(family, values)
        )
        if configuration is not None:
            variant = Variant.of(family, configuration, family.chosen_options(options))
            variants[f"{configuration.id} {dict(sorted(options.items()))}"] = variant
    toolchain = Nvrtc(file.device.arch)
    code: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        found = (
            one
            for part in compile_many(
                batch(family, tuple(variants.values())),
                toolchain,
                Cache(Path(cache)),
                os.cpu_count() or 1,
                16,
            )
            for one in part
        )
        for (name, variant), compiled in zip(variants.items(), found, strict=True):
            if isinstance(compiled, CompileFailure):
                sys.exit(f"{name}: {compiled}")
            layouts = {array: repr(arranged(layout)) for array, layout in variant.layouts.items()}
            launches = {
                kernel.name: [
                    [item.text for item in kernel.grid],
                    [item.text for item in kernel.block],
                    kernel.shared_bytes.text,
                    list(kernel.arguments),
                ]
                for kernel in variant.kernels.values()
            }
            digests = kernel_digests(compiled)
            if digests.keys() != set(compiled.symbols):
                sys.exit(f"{name}: its machine code cannot be read")
            code[name] = [digests, layouts, launches]
    return {
        "digests": {
            "source_digest": family.source_digest,
            "layouts_digest": layouts_digest(),
            "space_digest": family.space_digest,
        },
        "code": code,
    }


def arranged(layout: Any) -> Any:
    """The layout without what only explains or checks values: a range decides nothing else where nothing is scaled."""
    from autotune.compile.same_code import _arrangement

    limits = {} if layout.storage else {"low": None, "high": None}
    return _arrangement(replace(layout, data=replace(layout.data, doc="", **limits)))


def known(family: Any, values: Mapping[str, Any]) -> Any:
    """The configuration of these policy values, None where the space no longer has it."""
    from autotune.policy import known_configuration

    configuration, wrong = known_configuration(family, values)
    return None if wrong else configuration


def named(file: Any, family: Any) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Options and configuration, by values or by id, of everything that the file names."""
    from contextlib import suppress

    from autotune.errors import AutotuneError

    options = [dict(item.options) for item in file.entries.values()]
    options = [one for i, one in enumerate(options) if one not in options[:i]]
    for item in file.entries.values():
        yield item.options, item.configuration
        for name in (*item.tie_set, item.runner_up, item.break_even_with):
            with suppress(AutotuneError):
                if name:
                    family.space.configuration(name)
                    yield item.options, name
    kept = [one.configuration for one in file.prediction.kept.values()] if file.prediction else []
    for given in options:
        for values in (file.default, dict(family.space.control), *kept):
            yield given, values


if __name__ == "__main__":
    sys.exit(main())
