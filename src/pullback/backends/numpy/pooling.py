"""NumPy kernels: pooling and interpolation."""
