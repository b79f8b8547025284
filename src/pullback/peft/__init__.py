"""Adapters: few parameters that are learned beside the frozen ones of a model."""
