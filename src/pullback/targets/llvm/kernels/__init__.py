"""Whole kernels in LLVM code: attention, scans, gathering, random numbers, running values."""
