from .estimate import static_ranking as static_ranking
from .forecasts import Forecast as Forecast, by_cycles as by_cycles, unseen_policies as unseen_policies
from .warp_requests import Requests as Requests
