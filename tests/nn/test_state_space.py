"""State-space layers: the published models' numbers, streams with the same outputs, gradients, states that are kept."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from ..backends.installed import BFLOAT16, needs_llvmlite, optional, require

torch, transformers = optional("torch"), optional("transformers")
HAS_COMPILER = importlib.util.find_spec("llvmlite") is not None
X = np.random.default_rng(0).standard_normal((2, 70, 12)).astype(np.float32)
LAYERS = {
    "mamba": lambda: nn.Mamba(12, d_state=5, d_conv=3),
    "mamba2": lambda: nn.Mamba2(12, d_state=5, headdim=6, ngroups=2, chunk_size=16),
    "s4d": lambda: nn.S4D(12, d_state=5),
    "s4d bilinear": lambda: nn.S4D(12, d_state=5, method="bilinear", activation=False),
    "s5": lambda: nn.S5(12, d_state=7),
    "mingru": lambda: nn.MinGRU(12),
    "mingru wide": lambda: nn.MinGRU(12, expand=2),
    "rwkv": lambda: nn.RWKV(12, d_ffn=5, layer=1, layers=3),
    "rwkv time": lambda: nn.RWKVTimeMixing(12, d_inner=7),
    "rwkv channel": lambda: nn.RWKVChannelMixing(12, d_inner=5),
    "model": lambda: nn.StateSpaceModel([nn.Mamba(12, d_state=3), nn.MinGRU(12), nn.S4D(12, 4)]),
}


def made(name: str) -> Any:
    with pb.random.using(1):
        return LAYERS[name]()


# -- the same numbers as elsewhere ------------------------------------------------------------------


def peer_of(kind: str) -> Any:
    torch.manual_seed(0)
    if kind == "mamba":
        from transformers.models.mamba.modeling_mamba import MambaMixer

        config = transformers.MambaConfig(hidden_size=12, state_size=5, conv_kernel=3, expand=2, num_hidden_layers=1)
        return MambaMixer(config, layer_idx=0).float()
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    config = transformers.Mamba2Config(
        hidden_size=12, state_size=5, conv_kernel=4, expand=2, num_heads=4, head_dim=6, n_groups=2, chunk_size=16,
        num_hidden_layers=1,
    )  # fmt: skip
    return Mamba2Mixer(config, layer_idx=0).float()


@pytest.mark.parametrize("kind", ["mamba", "mamba2"])
def test_published_names_and_numbers(kind: str) -> None:
    """The state of a peer's layer is loaded as it is; outputs and all gradients agree."""
    pytest.importorskip("transformers")
    peer, layer = peer_of(kind), made(kind)
    with torch.no_grad():
        for parameter in peer.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    layer.load_state_dict({name: tensor.detach().numpy() for name, tensor in peer.state_dict().items()})
    x = torch.tensor(X, requires_grad=True)
    expected = peer(x)
    expected = expected[0] if isinstance(expected, tuple) else expected
    (expected**2).mean().backward()
    ours = pb.asarray(X).set_requires_grad(True)
    out = layer(ours)
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), atol=1e-5)
    found = pb.backward(pb.mean(out**2))
    np.testing.assert_allclose(found[ours].numpy(), x.grad.numpy(), atol=1e-6)
    theirs = {name: parameter.grad.numpy() for name, parameter in peer.named_parameters()}
    assert theirs.keys() == dict(layer.named_parameters()).keys()
    for name, parameter in layer.named_parameters():
        largest = np.abs(theirs[name]).max()
        np.testing.assert_allclose(found[parameter].numpy(), theirs[name], atol=1e-4 * largest + 1e-8, err_msg=name)


def test_a_diagonal_system_is_its_impulse_response() -> None:
    layer = made("s4d bilinear")
    parameters = {name: p.detach().numpy().astype(np.float64) for name, p in layer.named_parameters()}
    a = -np.exp(parameters["log_A_real"]) + 1j * parameters["A_imag"]
    step = np.exp(parameters["log_dt"])[:, None]
    factor, gain = (1 + step * a / 2) / (1 - step * a / 2), step / (1 - step * a / 2)
    seen = parameters["C"][..., 0] + 1j * parameters["C"][..., 1]
    response = 2 * ((seen * gain)[..., None] * factor[..., None] ** np.arange(70)).sum(1).real  # (channels, length)
    channels = [np.convolve(x, seen)[:70] + x * skipped for x, seen, skipped in zip(X[0].T, response, parameters["D"])]
    expected = np.stack(channels)
    np.testing.assert_allclose(layer(pb.asarray(X))[0].detach().numpy(), expected.T, atol=2e-5)


def rwkv_by_steps(layer: Any, x: np.ndarray) -> np.ndarray:
    """RWKV-4's time mixing of one sample (length, width) in a loop of float64, its sums as they are written."""
    of = {name: p.detach().numpy().astype(np.float64) for name, p in layer.named_parameters()}
    shifted = np.concatenate([np.zeros_like(x[:1]), x[:-1]])
    mixed = {
        name: (x * of[f"time_mix_{name}"][0] + shifted * (1 - of[f"time_mix_{name}"][0])) @ of[f"{name}.weight"].T
        for name in ("key", "value", "receptance")
    }
    decay, out = -np.exp(of["time_decay"]), []
    for t in range(len(x)):
        ages = np.arange(t - 1, -1, -1)[:, None]
        logarithms = np.concatenate([mixed["key"][:t] + ages * decay, mixed["key"][t : t + 1] + of["time_first"]])
        weights = np.exp(logarithms - logarithms.max(0))
        out.append((weights * mixed["value"][: t + 1]).sum(0) / weights.sum(0))
    return (np.array(out) / (1 + np.exp(-mixed["receptance"]))) @ of["output.weight"].T


@pytest.mark.parametrize("length", [1, 2, 5, 70])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_averages_of_rwkv_are_those_of_a_loop(length: int, scale: float) -> None:
    """Also where exp(key) is far beyond any number."""
    layer = made("rwkv time").astype("float64")
    with pb.no_grad():
        layer.key.weight *= scale
    x = X[:, :length].astype(np.float64)
    found = layer(pb.asarray(x)).detach().numpy()
    for one, sample in zip(found, x):
        np.testing.assert_allclose(one, rwkv_by_steps(layer, sample), rtol=1e-10, atol=1e-12)
    short = layer.astype("float32")(pb.asarray(X[:, :length])).detach().numpy()
    np.testing.assert_allclose(short, found, atol=1e-4 if scale > 1 else 1e-5)


def test_keys_far_apart_in_time_leave_no_nan() -> None:
    """A step whose weight is beyond float32, then steps that are below it, for long: values and all gradients."""
    layer = made("rwkv time")
    x = X[:1].repeat(8, axis=1).copy()
    x[:, 3] *= 1e4
    x[:, 300:] *= 1e-4
    out = layer(pb.asarray(x))
    gradients = pb.backward(pb.mean(out**2))
    assert np.isfinite(out.detach().numpy()).all()
    assert all(np.isfinite(gradients[p].numpy()).all() for p in layer.parameters())


def test_rwkv_has_published_names_and_numbers() -> None:
    """The state of a peer's block is loaded by its names, and outputs, states and all gradients agree."""
    pytest.importorskip("transformers")
    from transformers.models.rwkv.modeling_rwkv import RwkvBlock

    torch.manual_seed(0)
    config = transformers.RwkvConfig(hidden_size=12, attention_hidden_size=12, intermediate_size=5, num_hidden_layers=2)
    peer, layer = RwkvBlock(config, layer_id=1).float(), made("rwkv")
    with torch.no_grad():
        for parameter in peer.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    ours = lambda name: name.replace("attention.", "att.").replace("feed_forward.", "ffn.")
    layer.load_state_dict({ours(name): tensor.detach().numpy() for name, tensor in peer.state_dict().items()})
    state = [torch.zeros(2, 12, 2) for _ in range(5)]
    state[4] -= 1e30
    expected, state = peer(torch.tensor(X), state=state, use_cache=True)[:2]
    out, after = layer(pb.asarray(X), layer.initial_state(2))
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), atol=1e-5)
    states = (after["ffn"], *(after["att"][name] for name in ("before", "numerator", "denominator", "exponent")))
    for one, other in zip(states, state):
        np.testing.assert_allclose(one.detach().numpy(), other[..., 1].detach().numpy(), rtol=1e-4, atol=1e-5)
    (peer(torch.tensor(X))[0] ** 2).mean().backward()
    found = pb.backward(pb.mean(layer(pb.asarray(X)) ** 2))
    theirs = {ours(name): parameter.grad.numpy() for name, parameter in peer.named_parameters()}
    assert theirs.keys() == dict(layer.named_parameters()).keys()
    for name, parameter in layer.named_parameters():
        largest = np.abs(theirs[name]).max()
        np.testing.assert_allclose(found[parameter].numpy(), theirs[name], atol=1e-4 * largest + 1e-8, err_msg=name)


# -- streams ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYERS)
def test_steps_give_what_the_whole_sequence_gives(name: str) -> None:
    layer, x = made(name), pb.asarray(X)
    whole = layer(x).detach().numpy()
    state, outs = layer.initial_state(2), []
    with pb.no_grad():
        for t in range(70):
            out, state = layer.step(x[:, t], state)
            outs.append(out.numpy())
        np.testing.assert_allclose(np.stack(outs, 1), whole, atol=1e-5)
        first, between = layer(x[:, :33], layer.initial_state(2))
        rest, last = layer(x[:, 33:], between)
        nothing, same = layer(x[:, :0], last)
    np.testing.assert_allclose(np.concatenate([first.numpy(), rest.numpy()], 1), whole, atol=1e-5)
    assert nothing.shape == (2, 0, 12)
    for one, other, third in zip(*(pb.tree.leaves(tree) for tree in (state, last, same))):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-5)
        np.testing.assert_array_equal(other.numpy(), third.numpy())


@needs_llvmlite
@pytest.mark.parametrize("name", ["mamba", "mamba2", "rwkv", "model"])
def test_compiled_steps_stream(name: str) -> None:
    layer, x = made(name), pb.asarray(X)
    whole = layer(x).detach().numpy()

    @pb.compile
    def step(x: Any, state: Any) -> Any:
        with pb.no_grad():
            return layer.step(x, state)

    state = layer.initial_state(2)
    for t in range(70):
        out, state = step(x[:, t], state)
        np.testing.assert_allclose(out.numpy(), whole[:, t], atol=1e-5)


def test_states_are_saved_and_loaded(tmp_path: Any) -> None:
    layer, x = made("model"), pb.asarray(X)
    _, state = layer(x[:, :20], layer.initial_state(2))
    leaves, structure = pb.tree.flatten(state)
    pb.save({str(i): leaf.detach() for i, leaf in enumerate(leaves)}, tmp_path / "state.safetensors")
    loaded = pb.load(tmp_path / "state.safetensors")
    again = pb.tree.unflatten(structure, [loaded[str(i)] for i in range(len(leaves))])
    one, other = (layer(x[:, 20:], before)[0].detach().numpy() for before in (state, again))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", LAYERS)
def test_inputs_and_states_that_do_not_fit_are_refused(name: str) -> None:
    """A state of one sample, or a step with an axis of time, would else be broadcast."""
    layer = made(name)
    x, state = pb.zeros((2, 12)), layer.initial_state(2)
    for given, before, error, message in (
        (x[:, None], state, pb.ShapeError, r"expected \(samples, 12\), got \(2, 1, 12\)"),
        (x[:, :7], state, pb.ShapeError, r"expected \(samples, 12\), got \(2, 7\)"),
        (x, layer.initial_state(1), pb.ShapeError, r"of 1 samples, the input of 2\. Begin with `initial_state\(2\)`"),
        (x, None, pb.DtypeError, "expected a state, got None"),
        (x.astype(pb.int32), state, pb.DtypeError, "expected floating-point numbers, got int32"),
    ):
        with pytest.raises(error, match=message):
            layer.step(given, before)
    with pytest.raises(pb.ShapeError, match="of 3 samples, the input of 2"):
        layer(x[:, None], layer.initial_state(3))
    with pytest.raises(pb.DtypeError, match="expected floating-point numbers, got int32"):
        layer(x[:, None].astype(pb.int32))


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16])
@pytest.mark.parametrize("name", LAYERS)
def test_half_precision_stays_half_and_streams(name: str, dtype: Any) -> None:
    layer, x = made(name).astype(dtype), pb.asarray(X[:, :9]).astype(dtype)
    whole, state = layer(x), layer.initial_state(2)
    assert whole.dtype == dtype
    for t in range(9):
        kinds = [leaf.dtype for leaf in pb.tree.flatten(state)[0]]
        y, state = layer.step(x[:, t], state)
        assert y.dtype == dtype and [leaf.dtype for leaf in pb.tree.flatten(state)[0]] == kinds
        error = (y - whole[:, t]).astype(pb.float32).detach()
        assert float(abs(error).max()) < (5e-3 if dtype == pb.float16 else 4e-2)


# -- learning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "rwkv"])  # which is its two halves
def test_gradients(name: str) -> None:
    layer = made(name).astype("float64")
    names = [name for name, _ in layer.named_parameters()]
    x = X[:1, : 3 if name == "model" else 6].astype(np.float64)

    def loss(x: Any, *parameters: Any) -> Any:
        return pb.nn.functional_call(layer, dict(zip(names, parameters)), x)

    values = [parameter.detach().numpy() for parameter in layer.parameters()]
    assert pb.gradcheck(loss, (x, *values))


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *[(name, device) for name in ("mamba", "mamba2", "s5", "rwkv") for device in ("numpy", "torch:cpu")],
        ("mamba", "jax:cpu"),
        *[pytest.param(name, "jax:cpu", marks=pytest.mark.slow) for name in ("mamba2", "s5", "rwkv")],
    ],
)
def test_every_device_and_compiled(name: str, device: str) -> None:
    require(device)

    def losses(device: str, compiled: bool) -> list[float]:
        layer = made(name).to_device(device)
        optimizer = pb.optim.Adam(layer.parameters(), lr=0.01)

        def step(x: Any) -> Any:
            loss = pb.mean((layer(x) - x) ** 2)
            optimizer.step(pb.backward(loss))
            return loss.detach()

        run = pb.compile(step) if compiled else step
        return [run(pb.asarray(X, device=device)).item() for _ in range(4)]

    expected = losses("numpy", False)
    assert expected[-1] < expected[0]
    np.testing.assert_allclose(losses(device, False), expected, rtol=1e-4)
    if device == "jax:cpu" or HAS_COMPILER:
        np.testing.assert_allclose(losses(device, True), expected, rtol=1e-4)


def test_what_does_not_fit() -> None:
    with pytest.raises(pb.ShapeError, match=r"Mamba: expected \(samples, length, 12\), got \(2, 70, 11\)"):
        made("mamba")(X[..., :11])
    with pytest.raises(pb.ConfigurationError, match="24 channels inside are not divided into heads of 5"):
        nn.Mamba2(12, headdim=5)
    with pytest.raises(pb.ConfigurationError, match="layer must be from 0 to layers - 1 = 1, got 2"):
        nn.RWKV(12, layer=2, layers=2)
    with pytest.raises(pb.ConfigurationError, match="method must be 'zoh' or 'bilinear', got 'euler'"):
        nn.S4D(12, method="euler")
    with pytest.raises(pb.ConfigurationError, match="all of the same d_model"):
        nn.StateSpaceModel([nn.MinGRU(3), nn.MinGRU(4)])
    with pytest.raises(pb.ConfigurationError, match="expected layers of state-space models"):
        nn.StateSpaceModel([nn.Linear(3, 3)])
