from autotune.cli import entry_point

entry_point()
