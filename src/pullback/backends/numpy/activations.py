"""NumPy kernels: activation functions."""
