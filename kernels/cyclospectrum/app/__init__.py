"""``autotune run cyclospectrum``: spectra of peptides."""
