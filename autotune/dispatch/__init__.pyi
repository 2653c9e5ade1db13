from .call import arguments as arguments
from .monitor import Drift as Drift, Monitor as Monitor
from .prepared import Prepared as Prepared
from .target import Choosing as Choosing, Target as Target
from .tuned_kernel import TunedKernel as TunedKernel, explain_chain as explain_chain, load as load
