from .program import export as export
