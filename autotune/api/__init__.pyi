from .prior import name_five as name_five, read_prior as read_prior
from .result import Best as Best, SweepResult as SweepResult, save_winners as save_winners
from .sweeps import sweep as sweep
