"""What runs for inputs of certain sizes, and why."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.compile import Variant
from autotune.device import Module
from autotune.policy import Candidate

if TYPE_CHECKING:
    from autotune.dispatch.refinement import Refining


@dataclass(frozen=True)
class Chosen:
    """``refining`` is the trial of others that is under way for the input, which then has the say."""

    variant: Variant
    module: Module
    candidate: Candidate
    refining: "Refining | None" = None
