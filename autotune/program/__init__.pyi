from .aging import Aged as Aged
from .declared import Given as Given, Program as Program, load_given as load_given, workloads as workloads
from .survey import ProgramBudget as ProgramBudget
from .policy import save as save
from .report import write_report as write_report
from .run_time import (
    Running as Running,
    TunedProgram as TunedProgram,
    load as load,
    run_control as run_control,
)
from .steps import (
    ProgramArray as ProgramArray,
    KernelCall as KernelCall,
    Choose as Choose,
    Either as Either,
    Read as Read,
    Repeat as Repeat,
    Swap as Swap,
)
from .tuning import ProgramRow as ProgramRow, Tuned as Tuned, tune as tune
