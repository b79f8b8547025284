"""Elementwise operations in LLVM code: arithmetic, and functions right to a few units in the last place."""
