"""``autotune run reaction_diffusion``: photobleaching experiments."""
