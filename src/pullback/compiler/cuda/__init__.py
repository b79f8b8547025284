"""Programs on PyTorch's GPUs: lowered for the CUDA target, and run on tensors where they are."""
