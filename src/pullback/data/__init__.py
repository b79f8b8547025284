"""Datasets and batches."""

from .arrays import ArrayDataset, Subset, random_split
from .batches import Batches
from .text import Characters, TextWindows
