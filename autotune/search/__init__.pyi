from .gaussian_process import GaussianProcess as GaussianProcess, expected_improvement as expected_improvement
from .search import Search as Search
from .strategy import SAMPLERS as SAMPLERS, Strategy as Strategy
