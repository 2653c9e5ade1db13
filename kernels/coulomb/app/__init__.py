"""``autotune run coulomb``: maps of structures."""
