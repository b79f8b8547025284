"""Modules: layers with parameters, named and shaped as PyTorch's."""
