from .lint import Finding as Finding, lint as lint
from .new import new_family as new_family
