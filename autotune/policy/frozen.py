"""Frozen: a program takes what was measured before, and nothing is measured while it runs.

``True`` forbids to tune and to refine, leaves out what calls on this machine refined, and refuses configurations that
no policy file names. ``"exact"`` also refuses every guess between entries: an entry of this very input, or an error.
"""

import os
from typing import Literal

from autotune.errors import UsageError
from autotune.policy.file import PolicyFile

Frozen = bool | Literal["exact"]

_UNMEASURED = ("preset", "control")  # rules that name what nobody measured


def resolve_frozen(asked: Frozen | None, file: PolicyFile | None = None) -> Frozen:
    """Tell how frozen a program is.

    Args:
        asked: what the caller says; None leaves it to AUTOTUNE_FROZEN, and that to the policy file.
        file: the policy file of the device, if there is one.

    Returns:
        False, True or ``"exact"``.

    Raises:
        UsageError: ``asked`` is none of these.
    """
    if asked is None and (word := os.environ.get("AUTOTUNE_FROZEN", "")):
        asked = "exact" if word == "exact" else word != "0"
    if asked is None:
        return file is not None and file.frozen
    if asked not in (True, False, "exact"):
        raise UsageError(f"frozen={asked!r}: True, False or 'exact'; None leaves it to the policy file")
    return asked


def refuse_guess(frozen: Frozen, match: str) -> str:
    """Why a candidate of the rule ``match`` is not taken by a frozen program; empty where it may be."""
    if not frozen or match == "exact":
        return ""
    if frozen == "exact":
        return "frozen to measured inputs, and no entry is of this one: sweep it, or load with frozen=True"
    return (
        "frozen, and nobody measured it: sweep it, or load with frozen=False" if match in _UNMEASURED else ""
    )
