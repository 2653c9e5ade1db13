from .prior import read_prior as read_prior
from .result import Best as Best, SweepResult as SweepResult, saved as saved
from .sweeps import sweep as sweep
