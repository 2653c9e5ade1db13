"""How an array comes in or goes out, decided once for a variant and the kind of array:

    host     copied through the host, where the layout is applied or undone
    staged   copied to the GPU as it is, and stored by a kernel there
    moved    stored, or put back, by a kernel on the GPU
    lent     used where the caller has it: the layout leaves it as it is

Constant memory is filled from memory of the device, where the device lends: there, too, these are the ways.
"""

import logging
from functools import lru_cache
from typing import Any

from autotune.backends.transform import is_as_stored, refusal
from autotune.interop import View
from autotune.ordering import order_policies
from autotune.resident import can_be_staged, is_cut
from autotune.variant import Variant

__all__ = ["HOST", "LENT", "MOVED", "STAGED", "can_be_refilled", "is_reordered", "way_in", "way_out"]

HOST, STAGED, MOVED, LENT = "host", "staged", "moved", "lent"

_log = logging.getLogger("autotune")


def way_in(variant: Variant, name: str, array: Any, can_stage: bool) -> str:
    """How ``array`` becomes the input ``name`` of ``variant``; a GPU ``can_stage``."""
    if not isinstance(array, View):
        fits = can_stage and not is_reordered(variant) and can_be_staged(variant, name, array)
        return STAGED if fits else HOST
    layout = variant.layouts[name]
    if is_reordered(variant):
        reason = "an order policy moves index spaces on the host"
    elif is_cut(variant, name):
        reason = "it is cut into windows of constant memory"
    else:
        if is_as_stored(layout, array):
            return LENT
        reason = refusal(layout, array)
    if reason:
        _say_once(f"{variant.family.name}: {name} goes through the host: {reason}")
    return HOST if reason else MOVED


def way_out(variant: Variant, name: str, array: View) -> str:
    """How the output ``name`` of ``variant`` gets into ``array``."""
    layout = variant.layouts[name]
    if is_reordered(variant, name):
        reason = "an order policy moves it on the host"
    else:
        if is_as_stored(layout, array):
            return LENT
        reason = refusal(layout, array, inward=False)
    if reason:
        _say_once(f"{variant.family.name}: {name} goes through the host: {reason}")
    return HOST if reason else MOVED


def is_reordered(variant: Variant, name: str = "") -> bool:
    """Whether an order policy of the configuration permutes anything; with ``name``, extents of that array or links in
    it."""
    known = variant.family.orders
    return any(variant.configuration[policy.name] in known for policy in order_policies(variant, name))


def can_be_refilled(variant: Variant, name: str, lends: bool) -> bool:
    """Whether new content can take the place of the old, with nothing else to be made anew; ``lends`` says whether
    constant memory is filled from the device's."""
    layout = variant.layouts[name]
    if layout.memory == "constant" and (not lends or is_cut(variant, name)):
        return False
    flat = layout.memory != "texture" or layout.dims == "1d"
    return flat and layout.group == (1, 0) and not is_reordered(variant)


@lru_cache(maxsize=1024)
def _say_once(line: str) -> None:
    _log.debug(line)
