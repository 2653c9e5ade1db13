"""The cpu device, open for a module's tests."""

from cpu_results import backend  # noqa: F401
