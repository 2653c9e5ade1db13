from .process_worker import ProcessWorker as ProcessWorker
from .proof import prove_configurations as prove_configurations
from .request import (
    OPTIONS as OPTIONS,
    Case as Case,
    NotAsked as NotAsked,
    Option as Option,
    SweepRequest as SweepRequest,
    request_of as request_of,
)
from .runner import launch_workers as launch_workers, open_devices as open_devices
from .session import (
    Elsewhere as Elsewhere,
    Session as Session,
    Swept as Swept,
    Watched as Watched,
    raise_unless_measured as raise_unless_measured,
    open_session as open_session,
)
from .shared_inputs import (
    SharedArray as SharedArray,
    SharedInputs as SharedInputs,
    share_array as share_array,
    share_arrays as share_arrays,
)
from .sweep import Sweep as Sweep
