from .gaussian_process import (
    GaussianProcess as GaussianProcess,
    compute_expected_improvement as compute_expected_improvement,
)
from .members import (
    MOST_LISTED as MOST_LISTED,
    Unlisted as Unlisted,
    can_be_listed as can_be_listed,
    list_configurations as list_configurations,
    narrow as narrow,
)
from .prior import FIVE as FIVE, Prior as Prior
from .search import SURE as SURE, Search as Search
from .strategy import SAMPLERS as SAMPLERS, Strategy as Strategy
