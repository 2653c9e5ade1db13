from . import torch as torch
from .program import export as export
