"""``python -m autotune``, and the command ``autotune``."""

import sys

__all__ = ["entry_point"]


def entry_point() -> None:
    from autotune.cli import main  # measuring and compiling processes import this module, and need none of it

    sys.exit(main())


if __name__ == "__main__":
    entry_point()
