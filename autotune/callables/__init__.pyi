from .decorator import TunedFunction as TunedFunction, tuned as tuned
from .tuning import Tuned as Tuned, tune as tune
