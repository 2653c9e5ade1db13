from .blocks import Block as Block, Column as Column, Table as Table, drop_empty_columns as drop_empty_columns
from .files import write_all as write_all, write_static_report as write_static_report
from .progress_bar import show_live as show_live, pace as pace, make_console as make_console
from .static_pass import write_static as write_static
from .tables import study_html as study_html
from .trace import write_trace as write_trace
