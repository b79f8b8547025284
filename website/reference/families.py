"""Which page and which section a public name is in.

A rule is a name, or a module with `.*`: all names defined in it that no rule names. What is new in a module goes where
the rest of the module is; `tests/website/test_reference.py` finds what has no place.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from .names import Public, surface


@dataclass(frozen=True)
class Page:
    """A page of the reference: `sections` have rules by their titles."""

    name: str
    title: str
    said: str
    sections: dict[str, str]
    guides: tuple[str, ...] = ()  # pages below docs/ that explain how to use it
    namespace: str = ""  # what `pb.<namespace>` in a text leads to

    @property
    def path(self) -> str:
        return f"reference/{self.name}.md"


ARRAYS = (
    Page(
        "tensor",
        "Tensor",
        "The methods and properties of tensors. Most functions of `pb` that take an array first are methods, too.",
        {"": "Tensor"},
        ("start",),
    ),
    Page(
        "creation",
        "Creating tensors",
        "Tensors from data, from a shape and a value, and from ranges.",
        {
            "From data": "tensor asarray from_dlpack",
            "From a shape": "zeros ones full empty eye zeros_like ones_like full_like empty_like",
            "Ranges and grids": "arange linspace meshgrid functions.filled.*",
            "Constants": "pi e inf nan newaxis",
        },
    ),
    Page(
        "dtypes",
        "Dtypes",
        "Element types, and questions about them. They are the same on every backend and equal NumPy's.",
        {
            "Converting and asking": "astype can_cast isdtype result_type finfo iinfo functions.data_types.*",
            "The default": "default_dtype set_default_dtype autocast",
            "Element types": """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64
                complex64 complex128""",
        },
        ("precision",),
    ),
    Page(
        "elementwise",
        "Elementwise functions",
        "Functions of each element: shapes are broadcast, and an argument may be a number.",
        {
            "Arithmetic": """add subtract multiply divide floor_divide remainder negative positive reciprocal abs clip
                maximum minimum lerp functions.elementwise.*""",
            "Powers, exponentials and logarithms": """pow square sqrt rsqrt exp expm1 exprel log log10 log1p log2
                logaddexp""",
            "Trigonometry": "functions.trigonometry.*",
            "Rounding and signs": "functions.rounding.*",
            "Comparisons": """equal not_equal less less_equal greater greater_equal isclose allclose isfinite isinf
                isnan""",
            "Logic and bits": """logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_invert
                bitwise_xor bitwise_left_shift bitwise_right_shift functions.comparisons.*""",
            "Complex numbers": "real imag conj angle",
            "Special functions": "functions.special.*",
        },
    ),
    Page(
        "reductions",
        "Reductions",
        "Sums, extremes and statistics, of all elements or along axes; and their running forms.",
        {
            "Sums and statistics": "sum mean prod std var cov logsumexp functions.statistics.*",
            "Extremes": "max min argmax argmin",
            "Order": "median functions.quantiles.*",
            "Truth": "all any count_nonzero",
            "Running": "cumulative_sum cumulative_prod cumsum cumprod functions.running.*",
            "Differences and integrals": "diff trapezoid functions.reductions.*",
        },
    ),
    Page(
        "manipulation",
        "Shapes",
        "Elements in another shape or order, joined, split, repeated or padded.",
        {
            "Shapes": "reshape ravel flatten squeeze expand_dims",
            "Axes": "transpose permute_dims matrix_transpose moveaxis swapaxes flip roll",
            "Joining and splitting": "concat stack hstack vstack split array_split unstack",
            "Repeating and padding": "repeat tile pad functions.manipulation.*",
            "Broadcasting": "broadcast_to broadcast_arrays broadcast_shapes functions.shapes.*",
            "Triangles": "tril triu",
        },
    ),
    Page(
        "indexing",
        "Indexing, sorting and sets",
        "Elements by their places, by conditions, in order, and without repetitions.",
        {
            "Taking": "take take_along_axis",
            "Choosing": "where masked_fill nonzero",
            "Scattering": "scatter scatter_add scatter_reduce index_add put_along_axis functions.indexing.*",
            "Sorting and searching": "functions.sorting.*",
            "Sets": "functions.sets.*",
        },
    ),
    Page(
        "linear_algebra",
        "Linear algebra",
        "Products of matrices and tensors, and `pb.linalg`: equations, decompositions and norms of stacks of matrices.",
        {
            "Products": "matmul einsum tensordot dot inner outer vecdot vdot kron functions.linear.*",
            "Diagonals": "diag diag_embed diagonal trace",
            "Distances": "cdist",
            "More products": "linalg.products.*",
            "Equations": "linalg.solving.* linalg.least_squares.*",
            "Decompositions": "linalg.decompositions.*",
            "Determinants and norms": "linalg.determinants.* linalg.norms.*",
        },
        namespace="linalg",
    ),
    Page("fft", "Fourier transforms", "`pb.fft`, with gradients.", {"": "fft.*"}, namespace="fft"),
    Page(
        "random",
        "Random numbers",
        "`pb.random`: numbers that are the same on every backend for the same seed.",
        {
            "Distributions": "random.*",
            "Seeds and generators": """random.seed random.Generator random.using random.default_generator
                random.get_state random.set_state random.State random.split random.next_key""",
        },
        ("random",),
        "random",
    ),
    Page(
        "devices",
        "Devices and determinism",
        "Where tensors are: a device names an array library and one of its devices.",
        {"": "device set_default_device deterministic"},
        ("devices",),
    ),
    Page(
        "files",
        "Files",
        "Tensors by name in safetensors files, written whole or not at all.",
        {"": "files.*"},
    ),
)
GRADIENTS = (
    Page(
        "transforms",
        "Transforms",
        "Functions made of functions: gradients, Jacobians, Hessians, products with vectors, batches.",
        {
            "Gradients": "grad value_and_grad transforms.reverse.*",
            "Jacobians and Hessians": "jacrev jacfwd hessian transforms.forward.*",
            "Products with vectors": "vjp jvp hvp",
            "Many examples at once": "vmap per_example_grad per_example_norms transforms.*",
            "Checking": "gradcheck",
        },
        ("numpy", "vmap"),
    ),
    Page(
        "graph",
        "The graph",
        "What `backward` walks, where gradients go, what is recorded, and operations with gradients of your own.",
        {
            "Walking the graph": "backward Gradients GradCell",
            "What is recorded": "no_grad enable_grad stop_gradient straight_through",
            "Finding wrong numbers": "guard",
            "Operations of your own": "custom_op BackwardOp",
            "Levels": "Autodiff autodiff.*",
        },
        ("custom_operations",),
    ),
    Page(
        "control_flow",
        "Control flow",
        "Choices and loops that depend on values, the same eagerly, compiled and differentiated.",
        {"": "cond scan while_loop functions.control_flow.*"},
        ("control_flow",),
    ),
    Page(
        "checkpointing",
        "Checkpointing",
        "What is kept for the backward pass, and what is computed again.",
        {"": "checkpoint checkpointing BudgetCheckpointing BalancedCheckpointing NoCheckpointing"},
        ("checkpointing",),
    ),
    Page(
        "compile",
        "Compiling",
        "A function, or a whole training step, as one native call.",
        {"": "compile compiled compiler.*"},
        ("compile",),
    ),
    Page(
        "tree",
        "Trees",
        "`pb.tree`: dicts, lists, tuples, dataclasses and modules as arguments.",
        {"": "tree.*"},
        ("trees",),
        "tree",
    ),
    Page(
        "tape",
        "The gradient tape",
        "Gradients of code that computes with NumPy itself.",
        {"": "tape.*"},
        ("tape",),
    ),
)
FUNCTIONS = (
    Page(
        "activations",
        "Activations",
        "Functions between layers; each is one operation with an exact gradient.",
        {
            "Rectifiers": "relu relu6 leaky_relu prelu elu selu functions.activations.*",
            "Smooth": "gelu silu mish softplus hardswish glu",
            "Probabilities": "sigmoid hardsigmoid log_sigmoid softmax log_softmax",
        },
    ),
    Page(
        "losses",
        "Losses",
        "What training makes small.",
        {
            "Classes": "cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div",
            "Numbers": "mse_loss l1_loss smooth_l1_loss huber_loss functions.losses.*",
            "Similarity": "cosine_similarity",
        },
    ),
    Page(
        "convolution",
        "Convolution and pooling",
        "Over sequences, images and volumes, with PyTorch's shapes.",
        {
            "Convolution": "functions.convolution.*",
            "Pooling": "functions.pooling.*",
            "Patches and sizes": "interpolate functions.patches.*",
        },
    ),
    Page(
        "normalization",
        "Normalization, dropout and embeddings",
        "What stands beside the products of a network.",
        {
            "Normalization": """layer_norm rms_norm batch_norm group_norm instance_norm normalize
                functions.normalization.*""",
            "Dropout": "dropout",
            "Embeddings": "embedding embedding_bag one_hot",
            "Linear layers": "linear",
        },
    ),
    Page(
        "attention",
        "Attention",
        "Attention and positions, each as one operation.",
        {"": "scaled_dot_product_attention functions.attention.*"},
    ),
    Page(
        "state_space",
        "Scans and state spaces",
        "Recurrences over time that are computed in parallel.",
        {"": "ssm_scan associative_scan selective_scan state_space_dual discretize functions.discretization.*"},
        ("state_space",),
    ),
)
NETWORKS = (
    Page(
        "nn",
        "Modules",
        "`pb.nn`: modules, and what is done with all of them. Layers stand on the pages that follow.",
        {
            "Modules and parameters": "nn.Module nn.Parameter nn.functional_call nn.project nn.module.*",
            "Containers": "nn.Sequential nn.containers.*",
        },
        ("nn",),
        "nn",
    ),
    Page(
        "nn_layers",
        "Layers",
        "Linear layers, convolution, pooling, normalization, dropout. Their functions are those of `pb`.",
        {
            "Linear layers and embeddings": "nn.Linear nn.Embedding nn.linear.*",
            "Convolution": "nn.convolution.*",
            "Pooling": "nn.pooling.*",
            "Normalization": "nn.normalization.*",
            "Dropout": "nn.dropout.*",
            "Similarity": "nn.similarity.*",
        },
        ("nn",),
    ),
    Page(
        "nn_activations",
        "Activations and losses as layers",
        "What `pb.relu`, `pb.cross_entropy` and their like are, as modules.",
        {"Activations": "nn.activations.*", "Losses": "nn.losses.*"},
        ("nn",),
    ),
    Page(
        "nn_sequences",
        "Layers for sequences",
        "Recurrent layers, attention, transformers and state-space models.",
        {
            "Recurrent layers": "nn.RNN nn.GRU nn.LSTM nn.recurrent.*",
            "Attention and transformers": "nn.attention.* nn.transformer.*",
            "State-space models": "nn.state_space.*",
        },
        ("nn", "state_space"),
    ),
    Page(
        "nn_init", "Initialization", "`pb.nn.init`: new values for parameters.", {"": "nn.init.*"}, ("nn",), "nn.init"
    ),
)
TRAINING = (
    Page(
        "optim",
        "Optimizers",
        "`pb.optim`: optimizers, schedules of the learning rate, and what surrounds a step.",
        {
            "Optimizers": """optim.SGD optim.Adam optim.AdamW optim.NAdam optim.RAdam optim.RMSprop optim.Adagrad
                optim.Adafactor optim.Lion optim.LAMB optim.Muon optim.LBFGS optim.*""",
            "The base class": "optim.Optimizer",
            "Schedules": "optim.Scheduler optim.schedules.Schedule optim.schedules.*",
            "Clipping": "optim.clipping.*",
            "Scaling, accumulating, averaging": "optim.LossScaler optim.Accumulation optim.ExponentialMovingAverage",
        },
        ("optim", "precision"),
        "optim",
    ),
    Page("data", "Data", "`pb.data`: data sets, and batches of them.", {"": "data.*"}, ("training",), "data"),
    Page(
        "train",
        "Training",
        "`pb.train`: the loop, what hears of it, and its files.",
        {
            "The loop": "train.Trainer train.NotCompiledWarning",
            "Callbacks": """train.Callback train.EarlyStopping train.Progress train.Report train.JsonLines
                train.TensorBoard""",
            "Records and files": "train.History train.Records train.Record train.read_log train.checkpoints.*",
            "Pictures": "train.charts.* train.pictures.*",
            "More": "train.*",
        },
        ("training", "watching"),
        "train",
    ),
    Page(
        "metrics",
        "Metrics",
        "`pb.train.metrics`: figures over a whole data set that is given batch by batch.",
        {"": "train.metrics.* train.metric.* train.number_metrics.*"},
        ("training",),
        "train.metrics",
    ),
    Page(
        "mlp",
        "Mlp",
        "A small dense network on NumPy that allocates nothing per step.",
        {"": "Mlp MlpGradients Scratch mlp.*"},
        ("mlp",),
    ),
)
LANGUAGE = (
    Page(
        "models",
        "Language models",
        "`pb.models`: Llama 3, Qwen2 and Qwen3 in Hugging Face's folders; generating text.",
        {"": "models.load models.save models.qwen3 models.qwen2 models.llama3 models.*"},
        ("models",),
        "models",
    ),
    Page("peft", "Adapters", "`pb.peft`: LoRA, rsLoRA and DoRA.", {"": "peft.*"}, ("peft",), "peft"),
    Page(
        "quant",
        "Quantized weights",
        "`pb.quant`: weights in 8 or 4 bits, and learning with the rounding.",
        {"": "quant.*", "Tensors": "quantize QuantizedTensor"},
        ("quantization",),
        "quant",
    ),
    Page(
        "finetune",
        "Fine-tuning",
        "`pullback.finetune`: what `pullback finetune` is made of.",
        {"": "finetune.Run finetune.Settings finetune.Texts finetune.*"},
        ("finetuning",),
        "finetune",
    ),
)
MORE = (
    Page(
        "bridges",
        "Bridges",
        "Functions and models of PyTorch and JAX in graphs of Pullback, and the other way round.",
        {"": "from_torch to_torch from_jax to_jax bridges.*"},
        ("bridges",),
    ),
    Page(
        "backends",
        "Backends",
        "`pb.backends`: array libraries, and how to add one.",
        {"": "backends.*"},
        ("devices",),
        "backends",
    ),
    Page(
        "errors",
        "Errors",
        "What Pullback raises. Most are errors of Python's, too: `except ValueError` catches a `ShapeError`.",
        {"": "PullbackError errors.*"},
    ),
    Page("typing", "Types", "`pb.typing`: what to annotate with.", {"": "typing.*"}, (), "typing"),
)
GROUPS = {
    "Arrays": ARRAYS,
    "Gradients": GRADIENTS,
    "Functions for networks": FUNCTIONS,
    "Modules": NETWORKS,
    "Training": TRAINING,
    "Language models": LANGUAGE,
    "More": MORE,
}
PAGES = tuple(page for group in GROUPS.values() for page in group)


@functools.cache
def placed() -> dict[str, dict[str, list[Public]]]:
    """What stands on each page, section by section; a name that has no place is on none."""
    rules = {
        rule: (page.name, title) for page in PAGES for title, text in page.sections.items() for rule in text.split()
    }
    found: dict[str, dict[str, list[Public]]] = {page.name: {title: [] for title in page.sections} for page in PAGES}
    for item in surface().values():
        if rule := _rule_of(item, set(rules)):
            page, title = rules[rule]
            found[page][title].append(item)
    order = {rule: number for number, rule in enumerate(rules)}
    for sections in found.values():
        for items in sections.values():
            items.sort(key=lambda item: order.get(item.name, len(order)))
    return found


def _rule_of(item: Public, rules: set[str]) -> str | None:
    if item.name in rules:
        return item.name
    parts = item.module.split(".")
    modules = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((f"{module}.*" for module in modules if f"{module}.*" in rules), None)
