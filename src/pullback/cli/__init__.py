"""The command line."""

from .program import main
