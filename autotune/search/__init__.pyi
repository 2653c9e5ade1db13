from .search import Search as Search
from .strategy import SAMPLERS as SAMPLERS, Strategy as Strategy
