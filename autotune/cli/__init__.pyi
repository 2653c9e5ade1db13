from . import options as options
from .commands import app as app, main as main
from .profile import count_and_keep as count_and_keep
from .run import RunRequest as RunRequest, run_call as run_call, write_outputs as write_outputs
from .static_pass import run_static as run_static
