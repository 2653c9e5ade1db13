"""``autotune run eri``: integrals and matrices of molecules."""
