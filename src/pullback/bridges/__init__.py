"""Functions of PyTorch and JAX inside Pullback's graphs, and Pullback's functions inside theirs."""
