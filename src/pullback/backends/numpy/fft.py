"""NumPy kernels: discrete Fourier transforms."""
