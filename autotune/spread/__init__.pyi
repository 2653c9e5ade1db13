from .plan import ALLOCATIONS as ALLOCATIONS, Chunk as Chunk
from .rank_spread import RankSpread as RankSpread
from .ranks import RankLost as RankLost
from .spread import Report as Report, Spread as Spread, SpreadKernel as SpreadKernel
from .team import Member as Member
