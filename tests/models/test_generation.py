"""Generated text: what `transformers` generates, alone and in batches, on every device, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.models.sampling import Sampling

from ..backends.installed import needs_llvmlite, optional, require
from . import peers

torch = optional("torch")
transformers = optional("transformers")
DEVICES = ["numpy", "torch:cpu", "jax:cpu"]
COMPILED = [False, pytest.param(True, marks=needs_llvmlite)]
RNG = np.random.default_rng(3)
PROMPTS = [RNG.integers(0, 97, length).tolist() for length in (5, 1, 23, 150)]


def tiny(seed: int = 0, **options: Any) -> Any:
    """A model whose choices differ from token to token."""
    pb.random.seed(seed)
    sizes = {**peers.SIZES, "head_dim": 8, "initializer_range": 0.5, **options}
    return pb.models.qwen3(pb.models.DecoderConfig("qwen3", **sizes))


def expected(peer: Any, prompt: list[int], count: int) -> list[int]:
    tokens = torch.tensor([prompt])
    options = {"attention_mask": torch.ones_like(tokens), "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    made = peer.generate(tokens, max_new_tokens=count, **options)
    return made[0, len(prompt) :].tolist()


@pytest.mark.parametrize("compiled", COMPILED, ids=["eager", "compiled"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["qwen3", "qwen3 tied", "qwen2", "llama"])
def test_greedy_text_is_that_of_transformers(name: str, device: str, compiled: bool, tmp_path: Path) -> None:
    require(device)
    peer = peers.make(name, tmp_path)
    model = pb.models.load(tmp_path, device)
    wanted = [expected(peer, prompt, 12) for prompt in PROMPTS]
    assert model.generate(PROMPTS, 12, compile=compiled) == wanted  # rows of different lengths
    assert model.generate(PROMPTS[2], 12, compile=compiled) == wanted[2]


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_a_text_does_not_depend_on_those_beside_it(temperature: float) -> None:
    model = tiny()
    options: dict[str, Any] = {"max_new_tokens": 20, "temperature": temperature, "compile": False}
    first, second = (model.generate([PROMPTS[i], PROMPTS[0]], seed=7, **options) for i in (2, 3))
    assert first[1] == second[1]
    assert [model.generate(prompt, seed=7, **options) for prompt in (PROMPTS[2], PROMPTS[3])] == [first[0], second[0]]


@pytest.mark.parametrize("compiled", COMPILED, ids=["eager", "compiled"])
@pytest.mark.parametrize("device", DEVICES)
def test_logits_with_the_cache_are_those_without(device: str, compiled: bool) -> None:
    require(device)
    model = tiny(num_hidden_layers=3).to_device(device)
    generation = pb.models.Generation(model, samples=2, capacity=200, compile=compiled)
    seen: list[Any] = []
    step = generation.step
    generation.step = lambda *given: seen.append(step(*given)) or seen[-1]
    prompts = [PROMPTS[3], PROMPTS[0]]
    texts = generation.generate(prompts, 8)
    with pb.no_grad():
        for number, (prompt, text) in enumerate(zip(prompts, texts)):
            whole = model(pb.asarray([prompt + text[:-1]], device=device))[0, len(prompt) - 1 :].numpy()
            ours = np.stack([logits[number].numpy() for logits in seen])
            np.testing.assert_allclose(ours, whole, atol=1e-5 * np.abs(whole).max())


@needs_llvmlite
@pytest.mark.parametrize("device", DEVICES)
def test_one_program_steps_and_the_cache_stays_where_it_is(device: str) -> None:
    require(device)
    generation = pb.models.Generation(tiny().to_device(device), capacity=160)

    def addresses() -> list[int]:
        raws = [tensor.data for tensor in (*generation.cache.keys, *generation.cache.values)]
        if device == "numpy":
            return [raw.ctypes.data for raw in raws]
        return [raw.data_ptr() if device.startswith("torch") else raw.unsafe_buffer_pointer() for raw in raws]

    places = []
    for length in (1, 2, 40, 139, 150):
        for _ in generation.stream(RNG.integers(0, 97, length), 10):
            places.append(addresses())
    assert len(places) == 50 and all(place == places[0] for place in places[2:])  # JAX's first ones are its constants
    assert generation.step.traces == 1 and generation.read.traces == 2  # prompts are read in chunks of two sizes


@needs_llvmlite
def test_a_longer_cache_costs_no_copy() -> None:
    arenas = []
    for layers in (2, 12):
        generation = pb.models.Generation(tiny(num_hidden_layers=layers), capacity=8192)
        generation.generate([1], 2)
        arenas.append(generation.step.memory["arena"])
    assert not [kernel for kernel in generation.step.kernels if kernel.how == "numpy"]
    assert arenas[1] - arenas[0] < generation.cache.keys[0].nbytes  # twenty more tensors, and room for none of them


@pytest.mark.parametrize("device", DEVICES)
def test_equal_seeds_give_equal_texts(device: str) -> None:
    require(device)
    model = tiny(initializer_range=0.05).to_device(device)
    options: dict[str, Any] = {"max_new_tokens": 15, "temperature": 1.0, "top_k": 40, "top_p": 0.9, "compile": False}
    made = [model.generate(PROMPTS[:3], seed=seed, **options) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    assert made[0] == tiny(initializer_range=0.05).generate(PROMPTS[:3], seed=1, **options)
    pb.random.seed(5)
    first = model.generate(PROMPTS[0], **options)
    assert first != model.generate(PROMPTS[0], **options)
    pb.random.seed(5)
    assert first == model.generate(PROMPTS[0], **options)


def test_texts_end_with_their_stop_tokens() -> None:
    model = tiny()
    whole = model.generate(PROMPTS[:3], 30, compile=False)
    stop = whole[0][4], whole[1][9]
    ended = model.generate(PROMPTS[:3], 30, stop=stop, compile=False)
    for text, cut in zip(whole, ended):
        length = next((n + 1 for n, token in enumerate(text) if token in stop), 30)
        assert cut == text[:length]
    assert model.generate(PROMPTS[0], 30, stop=int(stop[0]), compile=False) == ended[0][: ended[0].index(stop[0]) + 1]
    steps = list(model.stream(PROMPTS[:3], 30, stop=stop, compile=False))
    assert [[step[i] for step in steps if step[i] is not None] for i in range(3)] == ended


def test_a_stream_gives_what_generate_gives() -> None:
    model = tiny()
    for options in ({}, {"temperature": 0.8, "seed": 3}):
        assert list(model.stream(PROMPTS[0], 9, compile=False, **options)) == model.generate(
            PROMPTS[0], 9, compile=False, **options
        )


def test_between_two_tokens_everything_is_as_it_was() -> None:
    model = tiny()
    weight = model.model.norm.weight
    for _ in model.stream(PROMPTS[0], 3, compile=False):
        assert model.training and (weight * 2).requires_grad
    assert weight.grad is None and all(not tensor.requires_grad for tensor in model.generate.__self__.buffers())


def test_a_second_text_ends_the_first_one() -> None:
    generation = pb.models.Generation(tiny(), capacity=32, compile=False)
    first = generation.stream([1, 2], 9)
    next(first)
    generation.generate([3], 2)
    with pytest.raises(pb.ConfigurationError, match="begun another text"):
        next(first)


@pytest.mark.parametrize("options", [{}, {"top_k": 7}, {"top_p": 0.6}, {"top_k": 20, "top_p": 0.9}, {"top_k": 500}])
@pytest.mark.parametrize("size", [97, 5000])
def test_what_may_be_drawn_is_what_transformers_keeps(options: dict[str, Any], size: int) -> None:
    process = transformers.generation.logits_process
    for temperature in (0.5, 1.0, 3.0):
        logits = np.random.default_rng(size).normal(size=size).astype(np.float32) * 2
        scores = torch.tensor(logits[None])
        scores = process.TemperatureLogitsWarper(temperature)(None, scores)
        if "top_k" in options:
            scores = process.TopKLogitsWarper(options["top_k"])(None, scores)
        if "top_p" in options:
            scores = process.TopPLogitsWarper(options["top_p"])(None, scores)
        shares = torch.softmax(scores[0].double(), -1).numpy()
        tokens, chances = Sampling(temperature, **options).likely(logits)
        assert set(tokens.tolist()) == set(np.flatnonzero(shares).tolist())
        np.testing.assert_allclose(chances / chances.sum(), shares[tokens], rtol=1e-4)


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    shares = np.array([0.5, 0.2, 0.2, 0.1])
    sampling = Sampling(temperature=1.0)
    drawn = [sampling.choose(np.log(shares), float(chance)) for chance in (np.arange(1000) + 0.5) / 1000]
    assert np.bincount(drawn).tolist() == [500, 200, 200, 100]
    assert sampling.choose(np.array([0.0, -np.inf, -np.inf]), 1 - 2**-53) == 0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"prompts": []}, pb.ShapeError, "empty"),
        ({"prompts": [[1], []]}, pb.ShapeError, "empty"),
        ({"prompts": [[[1]]]}, pb.ShapeError, "one axis"),
        ({"prompts": "text"}, pb.DtypeError, "Encode it with its tokenizer"),
        ({"prompts": 3}, pb.DtypeError, "a list or an array"),
        ({"prompts": [1.5]}, pb.DtypeError, "integers"),
        ({"prompts": [3, 97]}, pb.IndexingError, "97 tokens"),
        ({"prompts": [[3], [-1]]}, pb.IndexingError, "token -1"),
        ({"capacity": 8, "max_new_tokens": 7}, pb.ShapeError, "capacity=9"),
        ({"max_new_tokens": 0}, pb.ConfigurationError, "max_new_tokens"),
        ({"temperature": -1.0}, pb.ConfigurationError, "temperature must be 0"),
        ({"temperature": float("nan")}, pb.ConfigurationError, "temperature"),
        ({"temperature": True}, pb.ConfigurationError, "temperature"),
        ({"top_p": 0.0}, pb.ConfigurationError, "top_p must be above 0"),
        ({"top_p": 1.1}, pb.ConfigurationError, "top_p"),
        ({"top_k": 0}, pb.ConfigurationError, "top_k must be an integer"),
        ({"top_k": 2.0}, pb.ConfigurationError, "top_k"),
        ({"stop": [1.5]}, pb.DtypeError, "stop"),
        ({"seed": -1}, ValueError, "seed"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_before_anything_runs(given: dict[str, Any], error: Any, message: str) -> None:
    model = tiny()
    call = {"prompts": [1, 2, 3], "compile": False, **given}
    for method in (model.generate, model.stream):
        with pytest.raises(error, match=message):
            method(**call)


def test_a_model_that_overflows_is_an_error() -> None:
    model = tiny()
    with pb.no_grad():
        model.model.norm.weight *= float("inf")
    with pytest.raises(pb.NumericalInstabilityError, match="logit"), np.errstate(all="ignore"):
        model.generate([1], 2, compile=False)


def test_without_a_compiler_steps_run_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.targets import target_for

    monkeypatch.setattr(type(target_for("numpy")), "missing", lambda self: "llvmlite: `pip install llvmlite`")
    model = tiny()
    assert len(model.generate([1, 2], 3)) == 3
    with pytest.raises(pb.ConfigurationError, match="pip install llvmlite"):
        model.generate([1, 2], 3, compile=True)
