from .study import Best as Best, Study as Study, saved as saved
from .sweeps import sweep as sweep
