"""What ``autotune lint`` looks at: the text of a family's declaration, sources and workloads."""

from autotune.cli.lint.folder import lint, print_findings

__all__ = ["lint", "print_findings"]
