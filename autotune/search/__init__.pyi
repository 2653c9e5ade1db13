from .gaussian_process import GaussianProcess as GaussianProcess, expected_improvement as expected_improvement
from .members import (
    MOST_LISTED as MOST_LISTED,
    Unlisted as Unlisted,
    can_be_listed as can_be_listed,
    listed as listed,
    narrowed as narrowed,
)
from .prior import FIVE as FIVE, Prior as Prior
from .search import SURE as SURE, Search as Search
from .strategy import SAMPLERS as SAMPLERS, Strategy as Strategy
