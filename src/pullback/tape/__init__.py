"""The explicit recorder: operations by slot number, or a stretch of tensor code."""
