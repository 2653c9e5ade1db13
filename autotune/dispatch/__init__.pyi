from .prepared import Prepared as Prepared
from .spread.plan import ALLOCATIONS as ALLOCATIONS, Chunk as Chunk, Units as Units
from .spread.rank_spread import RankKernel as RankKernel, RankSpread as RankSpread
from .spread.ranks import RankLost as RankLost
from .spread.spread import Report as Report, Spread as Spread, SpreadKernel as SpreadKernel
from .spread.team import Member as Member
from .target import Choosing as Choosing
from .tuned_kernel import TunedKernel as TunedKernel, explained as explained, load as load
