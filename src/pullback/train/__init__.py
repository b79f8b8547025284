"""Training: the loop, its checkpoints, logs and report."""
