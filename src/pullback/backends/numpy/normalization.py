"""NumPy kernels: normalisation layers, dropout and embedding."""
