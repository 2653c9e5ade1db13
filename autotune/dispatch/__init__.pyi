from . import torch_operator as torch_operator
from .call import arguments as arguments
from .prepared import Prepared as Prepared
from .target import Choosing as Choosing, Target as Target
from .tuned_kernel import TunedKernel as TunedKernel, explained as explained, load as load
from .watch import Drift as Drift, Watch as Watch
