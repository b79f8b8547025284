"""Files: written whole or not at all, read with every claim in them checked, never executed."""
