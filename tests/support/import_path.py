"""Where processes that tests start find what the tests import."""

import os
import sys
from pathlib import Path

_HERE = Path(__file__).parent


def import_path() -> str:
    """PYTHONPATH for the checkout, its tests, and all that this process imports from: it may not be installed."""
    return os.pathsep.join(dict.fromkeys([str(_HERE), str(_HERE.parents[1]), *filter(None, sys.path)]))
