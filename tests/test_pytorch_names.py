"""Names of PyTorch, JAX, autograd, Keras and MyGrad lead to the names here."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import re
from importlib import import_module

import numpy as np
import pytest

import pullback as pb
from pullback.pytorch_names import _INSTEAD, missing

from .backends.installed import optional

CLASSES = {"Tensor": pb.Tensor, "Module": pb.nn.Module}
MODULES = sorted(_INSTEAD.keys() - CLASSES.keys())
TENSOR = pb.tensor([[1.0, 2.0], [3.0, 4.0]])
LAYER = pb.nn.Linear(2, 1)
OPTIMIZER = pb.optim.SGD(LAYER.parameters())
OBJECTS = {"t": TENSOR, "x": TENSOR, "module": LAYER, "output": TENSOR, "self": LAYER, "pb": pb}


def told(thing, name):
    with pytest.raises(AttributeError) as caught:
        getattr(thing, name)
    assert caught.value.name == name
    return str(caught.value)


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("pullback", "cat", "`pb.concat`"),
        ("pullback", "manual_seed", "`pb.random.seed`"),
        ("pullback", "jit", "`pb.compile`"),
        ("pullback", "fft2", "`pb.fft.fft2`"),
        ("pullback", "elementwise_grad", "`pb.grad"),
        ("pullback", "float", "`pb.float32`"),
        ("pullback.nn", "functional", "functions are in `pb`"),
        ("pullback.nn", "relu", "`pb.relu`"),
        ("pullback.optim", "lr_scheduler", "`pb.optim.schedules`"),
        ("pullback.data", "DataLoader", "`pb.data.Batches`"),
    ],
)
def test_the_error_says_what_to_write(module, name, words):
    with pytest.raises(AttributeError, match=rf"module '{module}' has no attribute '{name}'. Write .*{words}"):
        getattr(import_module(module), name)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("import pullback.nn.functional as F", "'functional' from 'pullback.nn'. Write `import pullback as F`"),
        ("from pullback.nn import functional as F", "'functional' from 'pullback.nn'. Write `import pullback as F`"),
        ("from pullback.data import DataLoader", "'DataLoader' from 'pullback.data'. Write `pb.data.Batches`."),
        ("from pullback.optim import SGD, lr_scheduler", "'lr_scheduler' from 'pullback.optim'. Write `pb.optim.sched"),
        ("from pullback.optim.lr_scheduler import OneCycleLR", "'lr_scheduler' from 'pullback.optim'. Write `pb.opti"),
        ("from pullback.optim import OneCycleLR", "pb.optim.schedules.OneCycle(total))` with the optimizer's `lr="),
        ("from pullback.utils.data import Dataset", "'utils' from 'pullback'. Write `pb.data`"),
        ("from pullback.nn.utils.rnn import pad_sequence", "`pb.stack` of what `pb.pad` gives for `pad_sequence`"),
        ("from pullback.linalg import multi_dot", "'multi_dot' from 'pullback.linalg'. Write `np.linalg.multi_dot`."),
        ("from pullback import cat", "'cat' from 'pullback'. Write `pb.concat`."),
    ],
)
def test_imports_say_what_to_write(statement, words):
    with pytest.raises(ImportError, match=re.escape(words)):
        exec(statement, {})


def test_imports_of_other_names_fail_as_everywhere():
    with pytest.raises(ImportError, match=r"cannot import name 'nothing' from 'pullback' \("):
        exec("from pullback import nothing", {})
    with pytest.raises(ModuleNotFoundError, match=r"No module named .pullback\.data\.nothing."):
        exec("import pullback.data.nothing", {})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda schedules: schedules.OneCycle(10, max_lr=0.1), "'max_lr'. Leave it out: the highest rate"),
        (lambda schedules: schedules.OneCycle(total_steps=10), "OneCycle() got an unexpected .* Write `total=`."),
        (lambda schedules: schedules.OneCycle(10, pct_start=0.1), "Write `rise=`."),
        (lambda schedules: schedules.OneCycle(10, cycle_momentum=True), "Leave it out: momentum"),
        (lambda schedules: schedules.Cosine(T_max=10), "Write `total=`."),
        (lambda schedules: schedules.Cosine(10, eta_min=0.1), "Write `minimum=eta_min / lr`: it is a factor"),
        (lambda schedules: schedules.Step(step_size=10), "Write `every=`."),
        (lambda schedules: schedules.Plateau(factor=0.1), "Write `decay=`."),
        (lambda schedules: schedules.Linear(10, start_factor=0.1), "Write `start=`."),
        (lambda schedules: schedules.Cosine(OPTIMIZER, T_max=10), "Write `pb.optim.Scheduler(optimizer, .*Cosine("),
        (lambda schedules: schedules.Step(OPTIMIZER, 10), "Write `pb.optim.Scheduler(optimizer, .*Step("),
        (lambda schedules: pb.optim.Scheduler(OPTIMIZER, lr_lambda=abs), "Write `schedule=`."),
    ],
)
def test_schedules_say_what_pytorchs_arguments_are(call, words):
    with pytest.raises(TypeError, match=re.escape(words).replace(r"\.\*", ".*")):
        call(pb.optim.schedules)


def test_schedules_refuse_other_arguments_as_every_class_does():
    with pytest.raises(TypeError, match=r"unexpected keyword argument .nothing.$"):
        pb.optim.schedules.Cosine(10, nothing=1)
    made = pb.optim.schedules.Cosine(10, warmup=2)
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("module", MODULES)
def test_other_names_are_plainly_missing(module):
    with pytest.raises(AttributeError, match=rf"^module '{module}' has no attribute 'nothing'$"):
        _ = import_module(module).nothing
    assert not hasattr(import_module(module), "__nothing__")


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner in _INSTEAD for name in _INSTEAD[owner]])
def test_what_is_to_be_written_exists(owner, name):
    text = _INSTEAD[owner][name]
    said = str(missing(owner, name))
    assert said.count("`") % 2 == 0 and said.endswith(".") and "``" not in said, said
    assert name not in (dir(import_module(owner)) if owner in MODULES else CLASSES[owner].__dict__.get("__slots__", ()))
    for start, path in re.findall(r"\b(pb|t|x|module|output|self)((?:\.[a-z_]\w*)+)", text):
        found = OBJECTS[start]
        for part in path[1:].split("."):
            if found is LAYER and part == "weights":
                break
            found = getattr(found, part)


# -- methods and attributes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("view", "`t.reshape(...)`"),
        ("unsqueeze", "`pb.expand_dims(t, axis=...)` or `t[None]`"),
        ("cuda", '`t.to_device("torch:cuda")`'),
        ("numel", "`t.size`"),
        ("dim", "`t.ndim`"),
        ("float", "`t.astype(pb.float32)`"),
        ("zero_", "`t[...] = 0`"),
        ("add_", "`t += other`"),
        ("exp_", "`t[...] = pb.exp(t)`"),
    ],
)
def test_tensors_say_what_to_write(name, words):
    for tensor in (TENSOR, pb.tensor([1.0], requires_grad=True)):
        assert told(tensor, name) == f"'Tensor' object has no attribute '{name}'. Write {words}."
    assert told(pb.Tensor, name) == f"type object 'Tensor' has no attribute '{name}'. Write {words}."


def test_a_method_of_pytorchs_that_is_a_function_here_is_named():
    assert told(TENSOR, "tril") == "'Tensor' object has no attribute 'tril'. Write `pb.tril(t, ...)`."


def test_modules_say_what_to_write():
    assert told(LAYER, "half") == "'Linear' object has no attribute 'half'. Write `module.astype(pb.float16)`."
    assert "module.to_device" in told(LAYER, "to") and "module.astype" in told(LAYER, "to")


def test_names_that_are_missing_are_not_there_in_any_other_way():
    for thing in (TENSOR, LAYER):
        plain = told(thing, "nothing")
        assert plain == f"'{type(thing).__name__}' object has no attribute 'nothing'"
        assert not hasattr(thing, "cuda") and "cuda" not in dir(thing)
        assert {"__repr__", "astype"} <= set(dir(thing))


def test_a_module_may_have_an_attribute_of_such_a_name():
    class Own(pb.nn.Module):
        def __init__(self):
            self.to = pb.nn.Linear(2, 2)
            self.register_buffer("half", pb.ones(2))

        def cuda(self):
            return "mine"

        def forward(self, x):
            return self.to(x) * self.half

    own = Own()
    assert own.cuda() == "mine" and list(own.state_dict()) == ["half", "to.weight", "to.bias"]
    assert {"to", "half", "cuda"} <= set(dir(own)) and "cpu" not in dir(own)
    with pb.no_grad():
        assert pb.compile(own)(pb.ones((1, 2))).tolist() == own(pb.ones((1, 2))).tolist()
    assert list(copy.deepcopy(own).state_dict()) == list(own.state_dict())


def test_a_subclass_with_names_of_its_own_is_asked_as_before():
    class Asking(pb.nn.Module):
        def __getattr__(self, name):
            if name == "cuda":
                return "answered"
            raise AttributeError(name)

    assert Asking().cuda == "answered"


def test_tensors_are_copied_and_pickled_as_before():
    for made in (copy.copy(TENSOR), copy.deepcopy(TENSOR), pickle.loads(pickle.dumps(TENSOR))):
        assert made.tolist() == TENSOR.tolist()


# -- PyTorch's most used names ---------------------------------------------------------------------

MOST_USED = {
    "Tensor": """
        T abs add_ all any argmax argmin argsort astype backward bmm bool byte chunk clamp clamp_ clamp_max clamp_min
        clone contiguous copy_ cos cpu cuda cumsum data det detach detach_ device diagonal dim div div_ dot double
        dtype eq exp exp_ expand expand_as fill_ flatten flip float floor fmod gather ge grad gt half index_add_
        index_copy_ index_fill_ index_put_ index_select int inverse is_complex is_contiguous is_cuda
        is_floating_point is_leaf isnan item le log log_softmax logsumexp long lt mH mT masked_fill masked_fill_
        masked_select matmul max mean median min mm movedim mul mul_ mv narrow ndim ne neg nelement new_empty new_full
        new_ones new_tensor new_zeros nonzero norm normal_ numel numpy outer permute pin_memory pinverse pow prod
        register_hook relu relu_ repeat repeat_interleave requires_grad requires_grad_ reshape reshape_as resize_
        retain_grad roll round scatter_ scatter_add scatter_add_ select shape short sigmoid sigmoid_ sign sin size
        slogdet softmax sort split sqrt sqrt_ square squeeze squeeze_ std sub sub_ sum svd swapaxes swapdims t take
        tanh tanh_ tensor_split tile to tolist topk trace transpose transpose_ tril triu type type_as unbind unflatten
        uniform_ unique unsqueeze unsqueeze_ var view view_as where xlogy zero_
    """,
    "pullback": """
        Generator Size Tensor abs absolute acos addmm all any arange argmax argmin argsort as_tensor asin atan atan2
        autograd baddbmm bernoulli bmm bool broadcast_to cat ceil chunk cholesky clamp clone compile concat conj cos
        cosh count_nonzero cross cuda det diagonal diff dist distributions div dot double einsum empty
        empty_like eq erf exp expm1 eye fft flatten flip float float32 float64 floor fmod from_numpy full full_like
        func gather ge get_rng_state gt half histogram imag index_select inference_mode int int64 inverse is_tensor
        isfinite isinf isnan jit kron le linalg linspace load log log10 log1p log2 logaddexp logical_and logsumexp
        long lt manual_seed masked_select matmul matrix_power max maximum mean median meshgrid min minimum mm moveaxis
        movedim mul mv nan_to_num narrow ne neg nn no_grad norm normal numel ones ones_like optim outer permute
        pinverse polygamma pow prod qr rand rand_like randint randn randn_like randperm real reciprocal relu remainder
        repeat_interleave reshape roll round save searchsorted select set_default_device set_default_dtype
        set_grad_enabled sigmoid sign sin sinh slogdet softmax solve sort split sqrt square squeeze stack std sub sum
        svd swapaxes swapdims t take take_along_dim tan tanh tensor tensor_split tensordot tile topk transpose tril
        triu true_divide trunc unbind unflatten unique unsqueeze use_deterministic_algorithms utils var vdot
        view_as_real vmap where zeros zeros_like
    """,
    "pullback.nn": """
        AdaptiveAvgPool2d AvgPool2d BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d Buffer ConstantPad1d Conv1d Conv2d
        Conv3d ConvTranspose1d ConvTranspose2d CrossEntropyLoss Dropout Dropout2d ELU Embedding Flatten GELU GRU GRUCell
        GroupNorm HuberLoss Identity InstanceNorm2d L1Loss LSTM LSTMCell LayerNorm LeakyReLU Linear LogSigmoid
        LogSoftmax MSELoss MaxPool2d Module ModuleDict ModuleList MultiheadAttention NLLLoss Parameter ParameterDict
        ParameterList RMSNorm RNN ReLU ReflectionPad2d ReplicationPad2d Sequential SiLU Sigmoid SmoothL1Loss Softmax
        Softplus Tanh Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
        TransformerEncoderLayer Upsample UpsamplingBilinear2d UpsamplingNearest2d ZeroPad2d functional init utils
    """,
    "Module": """
        add_module apply bfloat16 buffers children compile cpu cuda double eval extra_repr float forward get_buffer
        get_parameter get_submodule half load_state_dict modules named_buffers named_children named_modules
        named_parameters parameters register_buffer register_forward_hook register_forward_pre_hook
        register_full_backward_hook register_module register_parameter requires_grad_ state_dict to train training
        type zero_grad
    """,
    "pullback.optim": """
        Adagrad Adam AdamW Adafactor CosineAnnealingLR ExponentialLR LBFGS LambdaLR LinearLR Muon MultiStepLR NAdam
        OneCycleLR Optimizer RAdam RMSprop ReduceLROnPlateau SGD StepLR lr_scheduler swa_utils
    """,
}
#: Of JAX with Optax, autograd, Keras with TensorFlow, and MyGrad.
OTHERS = {
    "pullback": """
        PRNGKey block_until_ready checkpoint cond custom_jvp custom_vjp debug_nans device_get device_put devices
        disable_jit fori_loop grad hessian jacfwd jacobian jacrev jit jnp jvp lax linear_transpose linearize
        make_jaxpr nn numpy pmap pure_callback random remat scan stop_gradient switch top_k tree tree_map tree_util
        value_and_grad vjp vmap while_loop
        check_grads defjvp defvjp deriv elementwise_grad grad_and_aux grad_named hessian_tensor_product
        hessian_vector_product holomorphic_grad make_ggnvp make_hvp make_jvp make_vjp multigrad_dict primitive
        tensor_jacobian_product vector_jacobian_product
        GradientTape Model Sequential Variable callbacks cast constant convert_to_tensor function layers losses metrics
        optimizers reduce_mean reduce_sum
        add_sequence arccos astensor concatenate execute_op identity mem_guard_off multi_matmul multiply_sequence nnet
        no_autodiff power
        addcmul adjoint aminmax atleast_2d average bincount bucketize cartesian_prod celu column_stack complex corrcoef
        cosine_embedding_loss deg2rad dropout2d dstack exp2 fliplr flipud gaussian_nll_loss get_default_dtype gradient
        gumbel_softmax hard_swish hardtanh hsplit interp kthvalue logsigmoid logspace margin_ranking_loss mgrid nanmean
        nansum ndarray pairwise_distance pdist percentile poisson_nll_loss ptp rot90 single softmin softplus softshrink
        softsign std_mean swish trapz triplet_margin_loss upsample var_mean vectorize
    """,
    "pullback.linalg": "LinAlgError cho_factor cho_solve cond expm inv_ex lu_factor lu_solve multi_dot pinvh",
    "pullback.random": """
        beta gamma laplace lognormal multivariate_normal poisson rademacher random_sample standard_exponential
        PRNGKey RandomState SeedGenerator bernoulli categorical choice default_rng exponential fold_in gumbel key
        normal permutation rand randint randn random seed shuffle split standard_normal truncated_normal uniform
    """,
    "pullback.nn": """
        AveragePooling2D BatchNormalization Conv2DTranspose Dense Dropout Embedding Flatten GRU Input LSTM
        LayerNormalization MaxPooling2D Model Sequential UpSampling2D elu gelu initializers leaky_relu log_softmax
        logsumexp one_hot relu sigmoid silu softmax softplus swish tanh
    """,
    "pullback.optim": """
        Nadam adam adamw apply_updates clip_by_global_norm cosine_decay_schedule rmsprop sgd
        warmup_cosine_decay_schedule
    """,
    "Tensor": "assign assign_add assign_sub at block_until_ready clear_graph copy item null_grad null_gradients ravel",
    "Module": """
        call count_params evaluate fit get_weights load_weights predict save_weights set_weights summary
        trainable_variables trainable_weights
    """,
}


@pytest.mark.parametrize(
    ("owner", "name"),
    [(owner, name) for table in (MOST_USED, OTHERS) for owner, names in table.items() for name in names.split()],
)
def test_the_most_used_names_exist_or_lead_somewhere(owner, name):
    thing = {"Tensor": pb.Tensor, "Module": LAYER}.get(owner) or import_module(owner)
    if not hasattr(thing, name):
        assert re.search(r"\. (Write `.+`|[A-Z].+)\.$", told(thing, name))


@pytest.mark.parametrize("name", ["nan_to_num", "nanmean", "fliplr", "exp2", "histogram"])
def test_functions_of_numpys_that_take_tensors_are_named(name):
    assert f"Write `np.{name}`." in told(pb, name)
    assert f"Write `np.{name}(t, ...)`." in told(TENSOR, name)


F = optional("torch.nn.functional")
torch = optional("torch")


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=0.3)),
        ("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.3)),
        ("cartesian_prod", lambda x, y, z: torch.cartesian_prod(x, y)),
        ("celu", lambda x, y, z: F.celu(x, 0.7)),
        ("entr", lambda x, y, z: torch.special.entr(x.abs())),
        ("frac", lambda x, y, z: torch.frac(x)),
        ("gaussian_nll_loss", lambda x, y, z: F.gaussian_nll_loss(x, y, z)),
        ("hardshrink", lambda x, y, z: F.hardshrink(x)),
        ("hardtanh", lambda x, y, z: F.hardtanh(x)),
        ("kthvalue", lambda x, y, z: torch.kthvalue(x, 2)[0]),
        ("log1mexp", lambda x, y, z: torch.log(-torch.expm1(-x.abs()))),
        ("logmeanexp", lambda x, y, z: torch.logsumexp(x, 0) - math.log(len(x))),
        ("margin_ranking_loss", lambda x, y, z: F.margin_ranking_loss(x, y, torch.sign(x), 0.2)),
        ("ndtri", lambda x, y, z: torch.special.ndtri(z / 9)),
        ("poisson_nll_loss", lambda x, y, z: F.poisson_nll_loss(x, y)),
        ("soft_margin_loss", lambda x, y, z: F.soft_margin_loss(x, torch.sign(y))),
        ("softmin", lambda x, y, z: F.softmin(x, -1)),
        ("softshrink", lambda x, y, z: F.softshrink(x)),
        ("softsign", lambda x, y, z: F.softsign(x)),
        ("tanhshrink", lambda x, y, z: F.tanhshrink(x)),
        ("threshold", lambda x, y, z: F.threshold(x, 0.2, -4.0)),
        ("view_as_complex", lambda x, y, z: torch.view_as_complex(x.reshape(-1, 2))),
        ("xlog1py", lambda x, y, z: torch.special.xlog1py(x, z)),
    ],
)
def test_formulas_are_what_they_stand_for(name, theirs):
    x, y, z = np.array([0.1, -0.4, 1.5, -2.0]), np.array([0.5, -1.5, 0.3, 1.0]), np.array([0.5, 1.5, 2.5, 8.0])
    given = {"entr": np.abs(x), "log1mexp": np.abs(x), "ndtri": z / 9, "view_as_complex": x.reshape(-1, 2)}.get(name, x)
    second = z if name == "xlog1py" else y
    target = {"margin_ranking_loss": np.sign(x), "soft_margin_loss": np.sign(y)}.get(name, y)
    names = {
        "x": pb.asarray(given), "y": pb.asarray(second), "z": pb.asarray(z), "target": pb.asarray(target),
        "var": pb.asarray(z), "value": -4.0 if name == "threshold" else 0.3, "alpha": 0.7, "k": 2, "threshold": 0.2,
        "margin": 0.2, "math": math, "np": np, "pb": pb,
    }  # fmt: skip
    ours = eval(_INSTEAD["pullback"][name], names)
    np.testing.assert_allclose(ours, theirs(*map(torch.asarray, (x, y, z))), rtol=1e-6)


# -- keywords --------------------------------------------------------------------------------------

AXES = """
    all any argmax argmin argsort array_split concat cosine_similarity count_nonzero cummax cummin cumulative_prod
    cumulative_sum diff glu log_softmax logcumsumexp logsumexp max mean median min normalize prod quantile scatter
    scatter_reduce softmax sort split squeeze stack std sum topk trapezoid unstack var vecdot
"""
EXAMPLES = {
    "array_split": (TENSOR, 2), "concat": ([TENSOR],), "cosine_similarity": (TENSOR, TENSOR), "quantile": (TENSOR, 0.5),
    "scatter": (TENSOR, [[0, 0]] * 2, 1.0), "scatter_reduce": (TENSOR, [[0, 0]] * 2, 1.0, "sum"), "split": (TENSOR, 2),
    "squeeze": (TENSOR[:1],), "stack": ([TENSOR],), "topk": (TENSOR, 1), "vecdot": (TENSOR, TENSOR),
}  # fmt: skip


@pytest.mark.parametrize("name", AXES.split())
def test_functions_say_how_an_axis_is_given(name):
    arguments = EXAMPLES.get(name, (TENSOR,))
    with pytest.raises(
        TypeError,
        match=rf"^{name}\(\) got an unexpected keyword argument 'dim'. Write `axis=`(: values .*|\. A number .*)?\.$",
    ):
        getattr(pb, name)(*arguments, dim=0)
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'other'$"):
        getattr(pb, name)(*arguments, other=0)
    getattr(pb, name)(*arguments, axis=0)
    assert "other" not in inspect.signature(getattr(pb, name)).parameters


@pytest.mark.parametrize("name", ["sum", "max", "std", "var", "cumsum", "cumprod", "squeeze", "softmax"])
def test_methods_say_how_an_axis_is_given(name):
    with pytest.raises(TypeError, match=r"'dim'\. Write `axis=`"):
        getattr(TENSOR, name)(dim=0)


@pytest.mark.parametrize(
    ("call", "written"),
    [
        (lambda: TENSOR.mean(axis=0, keepdim=True), "keepdims="),
        (lambda: TENSOR.std(unbiased=False), "correction="),
        (lambda: pb.take_along_axis(TENSOR, TENSOR.astype("int64"), dim=1), "axis="),
        (lambda: pb.roll(TENSOR, 1, dims=0), "axis="),
        (lambda: pb.flip(TENSOR, dims=(0,)), "axis="),
        (lambda: pb.grad(pb.sum, argnum=0), "argnums="),
        (lambda: pb.hessian(pb.sum, argnum=0), "argnums="),
        (lambda: pb.vmap(pb.sum, in_dims=0), "in_axes="),
        (lambda: pb.zeros(3, requires_grad=True), "pb.zeros(...).set_requires_grad(True)"),
        (lambda: pb.arange(3.0, requires_grad=True), "pb.arange(...).set_requires_grad(True)"),
        (lambda: TENSOR.flatten(start_dim=1), "start_axis="),
        (lambda: pb.diagonal(TENSOR, dim1=0), "axis1="),
        (lambda: pb.diag_embed(TENSOR, dim2=0), "axis2="),
        (lambda: pb.tensordot(TENSOR, TENSOR, dims=1), "axes="),
        (lambda: pb.linalg.norm(TENSOR, dim=0), "axis="),
        (lambda: pb.linalg.matrix_norm(TENSOR, keepdim=True), "keepdims="),
        (lambda: pb.linalg.cross(TENSOR, TENSOR, dim=0), "axis="),
        (lambda: pb.fft.rfft(TENSOR, dim=0), "axis="),
        (lambda: pb.fft.fft2(TENSOR, dim=(0, 1)), "axes="),
        (lambda: pb.fft.fftshift(TENSOR, dim=0), "axes="),
    ],
)
def test_other_keywords_are_named(call, written):
    with pytest.raises(TypeError, match=re.escape(f"Write `{written}`")):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pb.nn.ReLU(inplace=True), "ReLU() got an unexpected keyword argument 'inplace'. Leave it out"),
        (lambda: pb.nn.Dropout(0.5, inplace=True), "'inplace'. Leave it out"),
        (lambda: pb.nn.Dropout(rate=0.5), "`p=`"),
        (lambda: pb.nn.Softmax(axis=1), "`dim=`"),
        (lambda: pb.nn.Conv2d(3, filters=4, kernel_size=3), "`out_channels=`"),
        (lambda: pb.nn.LayerNorm(3, epsilon=1e-3), "`eps=`"),
        (lambda: pb.optim.Adam(LAYER.parameters(), learning_rate=0.1), "Adam() got an unexpected keyword .* `lr=`"),
        (lambda: pb.optim.NAdam(LAYER.parameters(), beta_1=0.5), "`betas=`"),
        (lambda: pb.optim.SGD(LAYER.parameters(), lr=0.1, fused=True), "'fused'. Leave it out: `pb.compile`"),
    ],
)
def test_options_of_other_libraries_classes_lead_to_ours(call, words):
    with pytest.raises(TypeError, match=words.replace("()", r"\(\)")):
        call()


ROWS = (np.ones((4, 2), np.float32),)
CUBE = pb.zeros((2, 3, 4))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pb.nn.ReLU(True), "'inplace'. Leave it out"),
        (lambda: pb.data.Batches(ROWS, 2, num_workers=2), "Batches() got an unexpected .* `prefetch=`."),
        (lambda: pb.data.Batches(ROWS, 2, collate_fn=list), "`collate=`."),
        (lambda: pb.data.Batches(ROWS, 2, pin_memory=True), "Leave it out: `prefetch=2`"),
        (lambda: pb.train.Trainer(LAYER, abs, OPTIMIZER, max_grad_norm=1.0), "Trainer() got .* `clip_norm=`."),
        (lambda: pb.train.Trainer(LAYER, abs, OPTIMIZER, scheduler=abs), "`schedule=`."),
        (lambda: pb.train.Trainer(LAYER, abs, OPTIMIZER, gradient_accumulation_steps=2), "`accumulate=`."),
        (lambda: pb.load("weights.safetensors", map_location="cpu"), "load() got .* `device=`."),
        (lambda: pb.nn.Parameter(TENSOR, requires_grad=False), "'requires_grad'. Leave it out: a parameter requires"),
        (lambda: pb.nn.Parameter(TENSOR, False), "'requires_grad'. Leave it out: a parameter requires"),
        (lambda: pb.compile(abs, mode="max-autotune"), "compile() got .* Leave it out: there is one way"),
        (lambda: pb.compile(fullgraph=True), "Leave it out: a function is always one program"),
        (lambda: pb.compile(LAYER, dynamic=True), "Leave it out: another shape makes another program"),
        (lambda: pb.autocast("cpu", dtype=pb.bfloat16), 'autocast() takes no device. Write `pb.autocast("bfloat16")`.'),
        (lambda: pb.autocast(device_type="cuda", dtype="float16"), 'Write `pb.autocast("float16")`.'),
        (lambda: pb.zeros(2, 3), "zeros() takes one shape. Write `pb.zeros((2, 3))`."),
        (lambda: pb.ones(2, 3, dtype=pb.int64), "Write `pb.ones((2, 3))`."),
        (lambda: pb.empty(2, 3), "Write `pb.empty((2, 3))`."),
        (lambda: TENSOR.sort(dim=0), "Write `pb.sort(t, axis=...)` and `pb.argsort(t, axis=...)`"),
        (lambda: pb.sort(TENSOR, dim=0), "values alone come back, and `pb.argsort(x, axis=...)` gives their places."),
        (lambda: TENSOR.max(dim=0), "values alone come back, and `pb.argmax(x, axis=...)` gives their places."),
        (lambda: pb.min(TENSOR, dim=0), "values alone come back, and `pb.argmin(x, axis=...)` gives their places."),
        (lambda: pb.median(TENSOR, dim=0), "values alone come back"),
        (lambda: TENSOR.split(2, dim=0), "A number is how many parts there are, not their size"),
    ],
)
def test_other_arguments_of_pytorchs_lead_to_ours(call, words):
    with pytest.raises(TypeError, match=re.escape(words).replace(r"\.\*", ".*")):
        call()


@pytest.mark.parametrize("call", [lambda: CUBE.transpose(1, 2), lambda: pb.transpose(CUBE, 1, 2)])
def test_pytorchs_transpose_leads_to_swapaxes(call):
    with pytest.raises(pb.AxisError, match=r"^transpose: .* all 3 axes of shape \(2, 3, 4\) .* `swapaxes\(1, 2\)`\.$"):
        call()


def test_topk_takes_its_number_by_name():
    assert pb.topk(TENSOR, k=1)[0].tolist() == [[2.0], [4.0]]


def test_data_cannot_be_assigned():
    weight = pb.nn.Parameter(TENSOR)
    with pytest.raises(AttributeError, match=r"Write `with pb\.no_grad\(\): t\[\.\.\.\] = values`"):
        weight.data = TENSOR


@pytest.mark.parametrize(("device", "words"), [("cpu", "Write 'numpy'"), ("cuda:0", "Write 'torch:cuda'")])
def test_pytorchs_devices_lead_to_ours(device, words):
    with pytest.raises(pb.DeviceError, match=words):
        TENSOR.to_device(device)


@pytest.mark.parametrize("kind", [pb.autocast, pb.data.Batches, pb.train.Trainer, pb.optim.Scheduler])
def test_classes_whose_arguments_are_checked_show_their_own(kind):
    assert list(inspect.signature(kind).parameters) == list(inspect.signature(kind.__init__).parameters)[1:]


def test_options_of_ones_own_have_any_name():
    class Own(pb.nn.Module):
        def __init__(self, axis, inplace=False):
            self.axis, self.inplace = axis, inplace

    class Descent(pb.optim.SGD):
        def __init__(self, params, learning_rate):
            super().__init__(params, learning_rate)

    assert Own(axis=2, inplace=True).axis == 2
    assert Descent(LAYER.parameters(), learning_rate=0.5).param_groups[0]["lr"] == 0.5
    with pytest.raises(TypeError, match=r"'rate'$"):
        pb.nn.Linear(2, 3, rate=1)


def test_a_signature_is_shown_as_it_is_meant():
    shown = "(x: 'ArrayLike', /, axis: 'Any' = None, *, dtype: 'Any' = None, keepdims: 'bool' = False) -> 'Tensor'"
    assert str(inspect.signature(pb.sum)) == shown
    assert pickle.loads(pickle.dumps(pb.sum)) is pb.sum


@pytest.mark.parametrize(("module", "name"), [(pb.nn, "Conv2D"), (pb, "cross_entropi")])
def test_python_can_name_what_is_spelled_alike(module, name):
    """Tracebacks end with "Did you mean: 'Conv2d'?" where the error says what has been asked for the name."""
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert (caught.value.name, caught.value.obj) == (name, module)


def test_the_advice_stands_alone():
    with pytest.raises(AttributeError) as caught:
        _ = pb.cat
    assert caught.value.obj is None
