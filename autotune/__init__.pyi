from .api import Study as Study, sweep as sweep
from .declaration.plain_kernel import Kernel as Kernel
from .dispatch import Prepared as Prepared, TunedKernel as TunedKernel, load as load, torch_operator
from .errors import AutotuneError as AutotuneError
from .report import study_html as study_html

__version__: str
torch = torch_operator
