from .lint import lint as lint
from .new import new_family as new_family
