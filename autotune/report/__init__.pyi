from .blocks import Block as Block, Column as Column, Table as Table, without_empty as without_empty
from .files import write_all as write_all, write_static_report as write_static_report
from .progress_bar import live as live, pace as pace, watching as watching
from .static_pass import write_static as write_static
from .tables import study_html as study_html
from .trace import write_trace as write_trace
