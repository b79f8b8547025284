"""XLA: a program is a function of arrays of JAX's, which JAX compiles for the devices that its arguments are on."""
