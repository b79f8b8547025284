"""The public namespace, a module per family; each lists its public names in `__all__`."""
