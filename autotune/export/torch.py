"""A tuned kernel as an operator of torch, so that ``torch.compile`` and CUDA graphs take it as one of their own.

torch computes shapes long before it runs anything: what an operator gives is said by the family's declaration alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from autotune.declaration import Family
from autotune.device import elements
from autotune.dispatch import TunedKernel
from autotune.errors import UsageError, WorkloadError
from autotune.layout import Data

# By name: torch has one table of them for the whole process.
_registered: dict[str, tuple[TunedKernel, Any]] = {}


def op(kernel: TunedKernel, name: str = "") -> Any:
    """Register a tuned kernel as an operator of torch.

    Args:
        kernel: the tuned kernel; keep it open as long as the operator is used.
        name: NAME or NAMESPACE::NAME; by default ``torch.ops.autotune.FAMILY``.

    Returns:
        A ``CustomOpDef``, called with tensors in declared order, options and scalars by name. One output is a tensor,
        several are a tuple in declared order. It stays registered until the process ends.

    Raises:
        UsageError: another open kernel has that name.
    """
    import torch

    family = kernel.family
    qualified = name if "::" in name else f"autotune::{name or family.name}"
    known, made = _registered.get(qualified, (None, None))
    if known is kernel:
        return made
    if known is not None and not known.is_closed:
        raise UsageError(
            f"torch has an operator {qualified}, of {known!r}: give this one another name, or close that kernel"
        )
    if not all(part.isidentifier() for part in qualified.split("::", 1)):
        raise UsageError(
            f"{qualified!r} is no operator's name: give NAME or NAMESPACE::NAME, of letters, digits and _"
        )
    if not family.inputs:
        raise UsageError(f"{family.name} has no input, and an operator of torch begins with a tensor")
    made = torch.library.custom_op(
        qualified, _make_run(kernel), mutates_args=(), schema=schema(family), tags=_tags(torch, kernel)
    )
    made.register_fake(_make_shape_function(torch, family))
    _registered[qualified] = kernel, made
    return made


def schema(family: Family) -> str:
    """The operator's signature as torch writes it."""
    by_name = []
    for name, option in family.options.items():
        word = "int" if all(isinstance(value, int) for value in option.values) else "str"
        default = option.default if word == "int" else f'"{option.default}"'
        by_name.append(f"{word} {name}={default}")
    for name, scalar in family.callers_scalars.items():
        number = "float" if "float" in scalar.type else "int"
        if scalar.value is not None:
            by_name.append(f"{number}? {name}=None")
        elif scalar.default is None:
            by_name.append(f"{number} {name}")
        else:
            by_name.append(
                f"{number} {name}={float(scalar.default) if number == 'float' else int(scalar.default)}"
            )
    taken = [f"Tensor {data.name}" for data in family.inputs]
    made = ", ".join(["Tensor"] * len(family.outputs))
    given = ", ".join([*taken, *(["*"] if by_name else []), *by_name])
    return f"({given}) -> {made if len(family.outputs) == 1 else f'({made})'}"


def _make_run(kernel: TunedKernel) -> Callable[..., Any]:
    """What the operator does. torch has taken note of gradients by then."""

    def run(*tensors: Any, **named: Any) -> Any:
        arrays = [tensor.detach() if tensor.requires_grad else tensor for tensor in tensors]
        answer = kernel(*arrays, **_drop_none(named))
        made = tuple(answer.values()) if isinstance(answer, dict) else (answer,)
        place = _place(tensors)
        results = tuple(each if each.device == place else each.to(place) for each in map(_tensor, made))
        return results if len(results) > 1 else results[0]

    return run


def _tensor(made: Any) -> Any:
    """Records of the host, which torch has not, as bytes: what a GPU's are (foreign.allocator)."""
    import torch

    if not isinstance(made, np.ndarray):
        return made
    return torch.from_numpy(made[..., None].view(np.uint8) if made.dtype.names else made)


def _make_shape_function(torch: Any, family: Family) -> Callable[..., Any]:
    """What the operator gives, without any content: sizes may be symbols."""
    names = [data.name for data in family.inputs]

    def shape(*tensors: Any, **named: Any) -> Any:
        given = dict(zip(names, tensors, strict=True))
        shapes = {data.name: _shape(data, given[data.name]) for data in family.inputs}
        sizes = _sizes(family, shapes, _drop_none(named))
        results = []
        for data in family.apply_types(
            {n: v for n, v in _drop_none(named).items() if n in family.options}
        ).outputs:
            extents = [sizes[extent] for extent in data.shape]
            if data.record:
                extents.append(data.dtype.itemsize)
            kind = "uint8" if data.record else elements.torch_name(data.element_dtype)
            results.append(torch.empty(extents, dtype=getattr(torch, kind), device=_place(tensors)))
        return tuple(results) if len(results) > 1 else results[0]

    return shape


def _sizes(family: Family, shapes: Mapping[str, Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
    options = family.choose_options({n: v for n, v in named.items() if n in family.options})
    scalars = {n: s.default for n, s in family.scalars.items() if s.value is None and s.default is not None}
    return family.sizes(
        shapes, {**options, **scalars, **{n: v for n, v in named.items() if n in family.scalars}}
    )


def _shape(data: Data, tensor: Any) -> tuple[Any, ...]:
    """Of what the declaration calls an element: a record's parts are a last extent in torch."""
    shape = tuple(tensor.shape)
    if data.record and len(shape) == len(data.shape) + 1:
        shape = shape[:-1]
    if len(shape) != len(data.shape):
        raise WorkloadError(
            f"{data.name}: {len(shape)} dimensions given, {len(data.shape)} needed ({', '.join(data.shape)})"
        )
    return shape


def _drop_none(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if value is not None}


def _place(tensors: Sequence[Any]) -> Any:
    """Where results are: with the first tensor on a GPU, else on the host."""
    return next((tensor.device for tensor in tensors if tensor.is_cuda), tensors[0].device)


def _tags(torch: Any, kernel: TunedKernel) -> tuple[Any, ...]:
    """What torch.compile must not put into a CUDA graph says so."""
    unsafe = getattr(torch.Tag, "cudagraph_unsafe", None)
    by_host = kernel.kind == "cpu" or getattr(kernel.family.module, "plan", None) is not None
    return (unsafe,) if unsafe is not None and by_host else ()
