"""Datasets and batches."""
