"""``autotune run coulomb_map``: maps of structures."""
