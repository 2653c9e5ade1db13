from .files import write_all as write_all, write_static_report as write_static_report
from .meter import Live as Live, live as live, pace as pace
from .static_pass import write_static as write_static
from .study import saved as saved, sweep as sweep
from .trace import write_trace as write_trace
