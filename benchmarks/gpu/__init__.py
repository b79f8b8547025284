"""What runs on a real GPU, each in one call: `operations` and `checks` compare, `eager` measures."""
