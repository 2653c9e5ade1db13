from .agreement import Agreement as Agreement
from .rank_spread import RankSpread as RankSpread
from .ranks import RankLost as RankLost
from .spread import Report as Report, Spread as Spread
