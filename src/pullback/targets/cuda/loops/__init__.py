"""Loops as Triton kernels: a plan of blocks, and the text of the kernel."""
