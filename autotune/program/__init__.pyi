from .declared import Given as Given, Program as Program, load_given as load_given
from .run_time import run_control as run_control
from .steps import (
    Array as Array,
    Call as Call,
    Choose as Choose,
    Either as Either,
    Read as Read,
    Repeat as Repeat,
    Swap as Swap,
)
