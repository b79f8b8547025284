"""NumPy kernels: linear algebra: decompositions, solvers, determinants."""
