"""How C++ is built and loaded under AddressSanitizer and UndefinedBehaviorSanitizer."""

import subprocess
from functools import cache
from pathlib import Path

COMPILER = ("g++", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


@cache
def libraries() -> tuple[str, ...]:
    """What a process that was not built with them has to load first; none where there is no g++ with them."""
    names = "libasan.so", "libubsan.so", "libstdc++.so"
    try:
        asked = [[COMPILER[0], f"-print-file-name={name}"] for name in names]
        found = [
            subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() for ask in asked
        ]
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(found) if all(Path(path).is_absolute() for path in found) else ()
