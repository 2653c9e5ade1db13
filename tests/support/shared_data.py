"""Genomes and reads that are too large for the repository: a folder next to the checkout, or in it."""

from pathlib import Path

_ROOT = Path(__file__).parents[2]

SHARED = next(
    (found for found in (_ROOT / "shared", _ROOT.parent / "shared") if found.is_dir()), _ROOT / "shared"
)
