from .estimate import static_ranking as static_ranking
from .forecasts import Forecast as Forecast, Launched as Launched, forecast as forecast
from .trace import find_clang as find_clang
from .warp_requests import (
    SECTOR as SECTOR,
    SHARED as SHARED,
    ArrayTraffic as ArrayTraffic,
    add_traffic as add_traffic,
)
