"""Guards in native code: rows that look at Python's objects in memory."""
