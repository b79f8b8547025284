"""What runs on a real GPU, each in one call: `operations` compares, `eager` measures."""
