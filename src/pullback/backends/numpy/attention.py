"""NumPy kernels: attention and rotary embedding."""
