from . import options as options
from .commands import app as app, main as main
from .run import (
    application_of as application_of,
    checked_texts as checked_texts,
    read_inputs as read_inputs,
    run as run,
    write_outputs as write_outputs,
)
from .static_pass import run_static as run_static
