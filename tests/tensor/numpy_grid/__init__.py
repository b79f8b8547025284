"""The grid on which NumPy's functions on tensors are compared with the same on arrays: values, calls, exceptions."""
