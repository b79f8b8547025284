"""Operations that are computed as a whole: kernels in Triton, one module for each kind of work."""
