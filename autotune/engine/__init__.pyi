from .process_worker import ProcessWorker as ProcessWorker
from .proof import prove as prove
from .request import (
    OPTIONS as OPTIONS,
    Case as Case,
    NotAsked as NotAsked,
    Option as Option,
    SweepRequest as SweepRequest,
    request_of as request_of,
)
from .runner import launched as launched, opened as opened
from .session import (
    Session as Session,
    Swept as Swept,
    Watched as Watched,
    raise_unless_measured as raise_unless_measured,
    sweeping as sweeping,
)
from .shared_inputs import (
    SharedArray as SharedArray,
    SharedInputs as SharedInputs,
    shared_array as shared_array,
    shared_arrays as shared_arrays,
)
from .sweep import Sweep as Sweep
