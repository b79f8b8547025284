"""Which instructions PyTorch's kernels run as a whole on a GPU, by their names."""

from __future__ import annotations

CONVOLUTIONS = frozenset(
    ("convolution", "biased_convolution", "convolution_input_gradient", "convolution_weight_gradient")
)
POOLING = frozenset(("max_pool", "max_pool_indices", "max_pool_gradient", "pool_gather", "pool_scatter"))
ATTENTION = frozenset(("attention", "attention_gradient"))
LOSSES = frozenset(("cross_entropy", "cross_entropy_gradient"))
#: What makes its results in memory of its own, which nothing else is written to: they stay there.
MAKES_MEMORY = CONVOLUTIONS | POOLING | ATTENTION | {"cross_entropy_gradient"}
#: What is made beside an array, which is the last argument.
CREATION = frozenset(("full", "zeros", "arange", "eye", "linspace"))
#: What waits for nothing and reads nothing on the host, so that its launches can be captured.
CAPTURED = MAKES_MEMORY | LOSSES | frozenset((
    "matmul", "argmax", "argmin", "cumulative_sum", "cumulative_prod", "positive", "sum", "prod", "max", "min", "mean",
    "add", "subtract", "multiply", "divide", "conj", "real", "imag", "exp", "abs", "where", "sort", "argsort",
    "ssm_scan", "ssm_scan_gradient", "recurrence", *CREATION,
))  # fmt: skip
