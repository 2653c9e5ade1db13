from .index import Listing as Listing
from .pulling import Pulled as Pulled, pull as pull
from .pushing import push as push
