"""``autotune run ion_placement``: ions around structures."""
