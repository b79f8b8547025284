"""Programs on JAX's devices: one function of arrays, which XLA compiles whole."""
