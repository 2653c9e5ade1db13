from .commands import app as app, main as main
