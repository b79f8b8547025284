"""Matrix products: kernels of our own, and BLAS where it is faster."""
