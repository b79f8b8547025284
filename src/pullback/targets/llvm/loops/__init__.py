"""Loops over rows and elements in LLVM code: reading, computing, reducing, writing."""
