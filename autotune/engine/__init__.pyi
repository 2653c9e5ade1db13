from .messages import Worker as Worker
from .joining import request_of as request_of
from .process_worker import TRIAL_SECONDS as TRIAL_SECONDS
from .runner import launched as launched, opened as opened
from .session import (
    Case as Case,
    Session as Session,
    SweepRequest as SweepRequest,
    Swept as Swept,
    Watched as Watched,
    raise_unless_measured as raise_unless_measured,
    sweeping as sweeping,
)
from .sweep import NotAsked as NotAsked, Sweep as Sweep, SweepInterrupted as SweepInterrupted
