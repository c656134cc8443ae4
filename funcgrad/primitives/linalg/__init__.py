"""The primitives of linear algebra: systems, factorizations, spectra, matrix equations."""
