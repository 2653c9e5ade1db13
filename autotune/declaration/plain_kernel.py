"""An unmodified kernel, declared from Python: its text and a few words become a family folder, and from then on it is
a family like any other."""

import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from autotune.declaration import yamlfile
from autotune.declaration.family_folder import Family, read_family
from autotune.declaration.kernel_text import another_type, blank_comments, list_kernels, signature
from autotune.declaration.source_files import follow_includes
from autotune.declaration.source_text import SourceText
from autotune.errors import FamilyError, StoreError, UsageError, explained
from autotune.files import is_shared_cache, others_may_write, replace_file, user_cache
from autotune.layout import SCALAR_TYPES

_TEXT = re.compile(r"(?:(input|output|inout|scratch)\s+)?(\w+)(?:\s*\[([^\]]*)\])?")
_MARK = ".complete"  # in a folder that was written to its end

Argument = str | int | float | np.generic | Mapping[str, Any]
Choice = Sequence[int | str] | Mapping[str, Any]


class Kernel:
    """An unmodified CUDA C++ kernel with the choices to tune.

    ``source`` is the text or the path of a file (with the headers that it includes by name), ``name`` the kernel's.
    ``arguments`` has the kernel's parameters in their order::

        {"x": "input float32[n]", "y": "output float32[n]", "n": "int32", "factor": np.float32(2)}

    A role (input, output, inout for what is read and written, scratch), a type and extents (``n``, ``4``, ``n + 1``)
    make an array; a type alone is a number: a size where an array has an extent of that name, else a scalar that the
    caller gives; a numpy number is a scalar with a default. A mapping says the same, and more, in the words of
    family.yaml.
    ``policies`` has each choice with its values, the first of which is the default, or as a mapping as in family.yaml:
    in the source it is a macro of its name, or an argument of the kernel's template where ``template`` lists it.
    ``symbols`` are arrays that the source has itself (``__constant__ float filter[9];``), filled before the launch.
    ``grid``, ``block`` and ``shared_bytes`` are numbers or expressions over sizes and choices. ``reference`` names the
    configuration whose result every other one is held against: control, where ``python`` (the text of a family.py) has
    no function ``reference``. What else family.yaml knows is taken by its name: ``options``, ``extents``,
    ``constraints``, ``presets``, ``tolerance``, ``bytes``, ``operations``, ``compile_options``, ``baseline``, ...; in
    few words, a constraint is its condition or a pair of condition and reason, a tolerance the relative one, and an
    extent that never changes its number.

    The folder is stored in the user's cache, under a name made of its content; it can stand for a family's name.
    Raises FamilyError, UsageError.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        name: str,
        *,
        arguments: Mapping[str, Argument],
        grid: Sequence[int | str] | int | str,
        block: Sequence[int | str] | int | str,
        policies: Mapping[str, Choice] | None = None,
        template: Sequence[int | str] = (),
        shared_bytes: int | str = 0,
        symbols: Mapping[str, Argument] | None = None,
        family: str = "",
        python: str = "",
        headers: Mapping[str, str] | None = None,
        **declared: Any,
    ) -> None:
        if not isinstance(name, str):
            raise UsageError(
                f"name is {name!r}, and a kernel's name is a text: autotune.Kernel is of one kernel; several that run "
                "in turn are a family folder (autotune new, then list them in kernels: of its family.yaml)"
            )
        texts = _texts(source, name, headers or {})
        content = _content(family or _family_name(name), next(iter(texts)), declared)
        taken = _declare(content, arguments, symbols or {})
        _check_signature(texts, name, list(arguments))
        launch = {"arguments": taken, "grid": _to_list(grid), "block": _to_list(block)}
        if template:
            launch["template"] = list(template)
        if shared_bytes:
            launch["shared_bytes"] = shared_bytes
        content["kernels"] = {name: launch}
        content["policies"] = _policies(name, policies or {})
        if python:
            texts["family.py"] = python
        texts["family.yaml"] = yaml.safe_dump(
            _to_plain(content), sort_keys=False, allow_unicode=True, width=110
        )
        told, where = yamlfile.parse(texts["family.yaml"]), Path(f"autotune.Kernel({name!r})")
        yamlfile.check(told, "family", where, FamilyError)
        self.name = name
        self.folder = keep_files(content["family"], texts)
        self._files = tuple(texts)
        self.family  # noqa: B018 - what is wrong with it is said now
        _check_types(texts, name, content, taken)
        text = SourceText(self.family, self.folder)
        text.check()
        for message in text.list_warnings():
            warnings.warn(message, stacklevel=2)

    @cached_property
    def family(self) -> Family:
        """What the folder declares."""
        return read_family(self.folder)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """The family's files in a folder of the user's own, to go on with by hand. Files that an earlier ``save`` wrote
        there are replaced. Raises StoreError for a folder with other or edited files, or that cannot be written."""
        target = Path(folder)
        with explained(StoreError, f"cannot write {target}:"):
            target.mkdir(parents=True, exist_ok=True)
            if any(target.iterdir()) and not self._is_saved(target):
                raise StoreError(
                    f"{target} already has other files, or edited ones: delete it, or name another folder"
                )
            for name in self._files:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.folder / name, target / name)
        return target

    def _is_saved(self, folder: Path) -> bool:
        """Whether the files in ``folder`` are as a Kernel of this family wrote them, which the cache keeps."""
        try:
            texts = {name: (folder / name).read_bytes().decode() for name in self._files}
        except (OSError, UnicodeDecodeError):
            return False
        return (_cache_folder(self.family.name, texts) / _MARK).is_file()

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        return f"Kernel({self.name!r} in {str(self.folder)!r})"


def _family_name(name: str) -> str:
    """``VectorAdd`` is vector_add: a family's name is in small letters."""
    last = name.rsplit("::", maxsplit=1)[-1]
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower().strip("_")
    return spaced if re.match(r"[a-z]", spaced) else f"kernel_{spaced}"


def _texts(source: str | os.PathLike[str], name: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The source and its headers by the names they get in the folder, the source first."""
    if isinstance(source, str) and ("\n" in source or "__global__" in source):
        return {f"{_family_name(name)}.cu": source, **headers}
    path = Path(source)
    if not path.is_file():
        raise UsageError(
            f"source {os.fspath(source)!r} is no file and no kernel's text (which has __global__): correct the path"
        )
    main = path.resolve()
    files = follow_includes([main], main.parent)
    if outside := [each for each in files if each.startswith("..")]:
        raise UsageError(
            f"{path} includes {outside[0]}, which is outside of its folder: pass the texts of such files in headers, "
            "keyed by the names that the source includes"
        )
    texts = {key: each.read_text(encoding="utf-8") for key, each in files.items() if each != main}
    source_name = path.name if path.suffix in (".cu", ".cuh") else f"{path.stem}.cu"
    return {source_name: main.read_text(encoding="utf-8"), **texts, **headers}


def _content(family: str, source: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    own = {"schema", "family", "source", "kernels", "policies", "data"}
    allowed = set(yamlfile.schema("family")["properties"]) - own
    for key in declared:
        if key not in allowed:
            raise UsageError(
                f"autotune.Kernel knows no {key!r} (besides its own arguments: {', '.join(sorted(allowed))})"
            )
    head = {"schema": 1, "family": family, "source": source, "choices": "macros"}
    told = {
        key: _SHORT.get(key, lambda value: value)(value)
        for key, value in declared.items()
        if value is not None
    }
    return {**head, **told}


def _constraints(value: Any) -> list[Any]:
    """Of a constraint, a text is the condition and its own reason; a pair has both."""
    constraints = []
    for each in [value] if isinstance(value, str) else value:
        pair = (each, each) if isinstance(each, str) else each
        is_pair = isinstance(pair, tuple) and len(pair) == 2
        constraints.append({"require": pair[0], "reason": pair[1]} if is_pair else each)
    return constraints


def _extents(value: Any) -> Any:
    """A number is a size that never changes."""
    if not isinstance(value, Mapping):
        return value
    return {name: {"value": each} if isinstance(each, int) else each for name, each in value.items()}


# What is said in fewer words than family.yaml has.
_SHORT: Mapping[str, Callable[[Any], Any]] = {
    "constraints": _constraints,
    "explore": _constraints,
    "extents": _extents,
    "tolerance": lambda value: {"relative": value} if isinstance(value, (int, float)) else value,
}


def _declare(
    content: dict[str, Any], arguments: Mapping[str, Argument], symbols: Mapping[str, Argument]
) -> list[str]:
    """Data, extents and scalars from the kernel's parameters; the arguments in their order."""
    data: dict[str, Any] = {}
    taken: list[str] = []
    numbers: dict[str, Argument] = {}
    for name, argument in arguments.items():
        array = _array(name, argument)
        if array is None:
            numbers[name] = argument
            taken.append(name)
        elif array["role"] == "inout":
            data[name] = {**array, "role": "input"}
            after = f"{name}_after"
            data[after] = {**array, "role": "output", "begins_as": name}
            taken.append(after)
        else:
            data[name] = array
            taken.append(name)
    for name, argument in symbols.items():
        array = _array(name, argument)
        if array is None:
            raise UsageError(f"symbols: {name} is {argument!r}; an array is needed, as float32[9]")
        data[name] = {**array, "access": "symbol"}
    content["data"] = data
    if not any(array.get("role") == "output" for array in data.values()):
        raise UsageError(
            "no argument is written to, so there is no result: give what the kernel writes its role, as output "
            "float32[n] or inout float32[n]"
        )
    extents = {extent for array in data.values() for extent in array["shape"]}
    for name, argument in numbers.items():
        _declare_number(content, name, argument, name in extents or name in content.get("extents", {}))
    return taken


def _check_signature(texts: Mapping[str, str], name: str, arguments: Sequence[str]) -> None:
    """Raise UsageError where no text names the kernel, or where it has another number of parameters; a text that a
    macro may change is accepted."""
    bare = {file: blank_comments(text) for file, text in texts.items()}
    last = name.partition("<")[0].strip().rsplit("::", maxsplit=1)[-1]
    declared = [kernel for text in bare.values() for kernel in list_kernels(text)]
    if declared and not any(re.search(rf"\b{re.escape(last)}\b", text) for text in bare.values()):
        has = ", ".join(dict.fromkeys(declared))
        raise UsageError(f"{next(iter(texts))} has no kernel {name}; it has {has}")
    for file, text in bare.items() if declared.count(last) == 1 else ():
        parameters = signature(text, last)
        if len(parameters) in (0, len(arguments)) or not all(
            re.fullmatch(r"[^#]*[\s*&\]>]\w+(\[\w*\])?", parameter.text) for parameter in parameters
        ):
            continue
        names = [parameter.name for parameter in parameters]
        absent = [each for each in names if each not in arguments]
        extra = [each for each in arguments if each not in names]
        how = "list each parameter in its order"
        if len(names) > len(arguments) and absent and not extra:
            how = f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} missing"
        elif len(names) < len(arguments) and extra and not absent:
            how = f"delete {', '.join(extra)}"
        raise UsageError(
            f"kernel {name} has {len(names)} parameters in {file} and {len(arguments)} arguments here: {how}"
        )


def _check_types(
    texts: Mapping[str, str], name: str, content: Mapping[str, Any], taken: Sequence[str]
) -> None:
    """Raise UsageError where the kernel has another type for an argument; a sign alone makes no difference."""
    told = next(filter(None, (signature(text, name) for text in texts.values())), ())
    if len(told) != len(taken):
        return
    numbers = {**content.get("extents", {}), **content.get("scalars", {})}
    for parameter, argument in zip(told, taken, strict=True):
        array = content["data"].get(argument)
        if array is not None and array.get("access", "pointer") != "pointer":
            continue
        spec = array or numbers.get(argument, {})
        kind = spec.get("type", "" if array else "int32") if isinstance(spec, Mapping) else "int32"
        alike = f"u{kind}" if kind.startswith("int") else kind.removeprefix("u")
        wanted, also = (
            another_type(parameter.text, one, is_pointer=array is not None) for one in (kind, alike)
        )
        if wanted and also:
            raise UsageError(
                f"kernel {name} takes `{parameter.text}`, and the argument {argument.removesuffix('_after')} is "
                f"{'an array of ' if array else ''}{kind}: give it as the kernel has it, or make it {wanted} there"
            )


def _declare_number(content: dict[str, Any], name: str, argument: Argument, is_extent: bool) -> None:
    if isinstance(argument, Mapping):
        spec = dict(argument)
    elif isinstance(argument, np.generic):
        spec = {"type": argument.dtype.name, "default": argument.item()}
    elif isinstance(argument, str) and argument in SCALAR_TYPES:
        spec = {"type": argument}
    else:
        raise UsageError(
            f"argument {name}: {argument!r} is neither an array (input float32[n]) nor a number: name its type, one of "
            f"{', '.join(SCALAR_TYPES)}, or give its default as a numpy number, as np.float32(2)"
        )
    if is_extent:
        before = content.setdefault("extents", {}).get(name, {})
        described = {"doc": before} if isinstance(before, str) else dict(before)
        content["extents"] = {**content["extents"], name: {**described, **spec}}
    else:
        content["scalars"] = {**content.get("scalars", {}), name: spec}


def _array(name: str, argument: Argument) -> dict[str, Any] | None:
    """``input float32[height, width]`` as family.yaml has it; None for a number."""
    if isinstance(argument, Mapping):
        return dict(argument) if "shape" in argument else None
    match = _TEXT.fullmatch(argument.strip()) if isinstance(argument, str) else None
    if isinstance(argument, str) and (match is None or (match[1] and match[3] is None)):
        raise UsageError(
            f"argument {name}: cannot read {argument!r}: an array is a role, a type and extents, as input "
            "float32[height, width]; a number is its type, as int32"
        )
    if match is None or match[3] is None:
        return None
    sizes = re.split(r",(?![^()]*\))", match[3])
    shape = [size.strip() for size in sizes if size.strip()]
    return {"role": match[1] or "input", "type": match[2], "shape": shape}


def _policies(kernel: str, policies: Mapping[str, Choice]) -> dict[str, dict[str, Any]]:
    if not policies:
        raise UsageError(
            f"kernel {kernel} has no policies, so there is nothing to choose: give each choice with its values, as "
            "policies={'block_size': [64, 128]}"
        )
    return {name: _choice(name, value) for name, value in policies.items()}


def _choice(name: str, value: Choice) -> dict[str, Any]:
    spec = dict(value) if isinstance(value, Mapping) else {"values": value}
    values = spec.get("values")
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(
            f"policy {name}: {values!r} is no list of values: list those to try, the default first"
        )
    listed = [each.item() if isinstance(each, np.generic) else each for each in values]
    for each in listed:
        if isinstance(each, bool) or not isinstance(each, (int, str)):
            raise UsageError(
                f"policy {name}: {each!r} is neither a whole number nor a word: what stands in the source is written "
                "as a text, as '1.5f' or 'true'"
            )
    if not listed:
        raise UsageError(f"policy {name} has no values: list those to try, the default first")
    return {"default": listed[0], **spec, "values": listed}


def _to_list(value: Iterable[int | str] | int | str) -> list[int | str]:
    return [value] if isinstance(value, (int, str)) else list(value)


def _to_plain(value: Any) -> Any:
    """Numbers, texts, lists and mappings as YAML writes them."""
    if isinstance(value, Mapping):
        return {key: _to_plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _cache_folder(family: str, texts: Mapping[str, str]) -> Path:
    """Where the cache keeps those files: under a name that another content would not have."""
    content = "".join(f"{name}\0{len(text.encode())}\0{text}" for name, text in sorted(texts.items()))
    return user_cache() / "kernels" / f"{family}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def keep_files(family: str, texts: Mapping[str, str]) -> Path:
    """The folder of the user's cache with those files, made once. Raises StoreError."""
    folder = _cache_folder(family, texts)
    if (folder / _MARK).is_file() and _is_as(folder, texts):
        _require_own(folder)
        return folder
    with explained(StoreError, f"cannot write {folder}:", "; AUTOTUNE_CACHE names another folder for it"):
        for place in (folder.parent.parent, folder.parent, folder):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_own(folder)
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")
        (folder / _MARK).touch()
    return folder


def _require_own(folder: Path) -> None:
    """Raise StoreError for a folder in which another user can put files: what is there is compiled and run."""
    if not is_shared_cache() and (place := others_may_write(folder, folder.parent, folder.parent.parent)):
        raise StoreError(
            f"{place} can be written by other users, and sources stored there would run as you: name a folder of "
            "your own in "
            "AUTOTUNE_CACHE, or set AUTOTUNE_CACHE_SHARED=1 to run sources that any of its users stores there"
        )


def _is_as(folder: Path, texts: Mapping[str, str]) -> bool:
    try:
        return all((folder / name).read_bytes() == text.encode() for name, text in texts.items())
    except OSError:
        return False
