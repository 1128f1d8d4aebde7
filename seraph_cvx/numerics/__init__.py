"""Arrays of any library, checks of input, the PSD cone, rounding errors, threads of BLAS."""
