"""Files: exact round trips, old files for ever, and a clear error for everything that is no sound file."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional

safetensors_numpy = optional("safetensors.numpy")

GOLDEN = Path(__file__).parent / "golden"
SUFFIXES = (".json", ".safetensors")


@pytest.fixture
def mlp():
    made = pb.Mlp.builder(input=3).layer(5, "tanh").layer(4, "gelu").layer(2, "softmax").seed(3).build()
    made.biases(0)[...] = [1e-45, 3.4e38, -1 / 3, 0.1, -0.0]
    return made


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trips_keep_every_bit(tmp_path, suffix, dtype):
    mlp = pb.Mlp([7, 9, 3], "silu", "sigmoid", seed=4, dtype=dtype)
    mlp.parameters[:5] = [np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max, 1 / 3, 0.1, -0.0]
    path = tmp_path / f"model{suffix}"
    mlp.save(path)
    loaded = pb.Mlp.load(str(path))
    assert loaded.parameters.tobytes() == mlp.parameters.tobytes()
    assert (loaded.sizes, loaded.activations, loaded.dtype) == (mlp.sizes, mlp.activations, mlp.dtype)
    loaded.parameters[...] = 0  # its own memory, not the file's
    assert pb.Mlp.load(path).parameters.tobytes() == mlp.parameters.tobytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_of_version_1_are_read_for_ever(suffix):
    expected = json.loads((GOLDEN / "version_1_expected.json").read_text())
    mlp = pb.Mlp.load(GOLDEN / f"version_1{suffix}")
    assert repr(mlp) == "Mlp(3-5-4-2, relu, relu, identity, float32)"
    assert mlp.parameters.tolist() == expected["parameters"]
    assert mlp.predict(np.array(expected["x"], np.float32)).tolist() == expected["outputs"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_of_version_1_are_written_as_they_were(tmp_path, suffix):
    path = tmp_path / f"again{suffix}"
    pb.Mlp.load(GOLDEN / f"version_1{suffix}").save(path)
    assert path.read_bytes() == (GOLDEN / f"version_1{suffix}").read_bytes()


def test_safetensors_are_readable_by_others_with_torchs_names(tmp_path, mlp):
    mlp.save(tmp_path / "model.safetensors")
    arrays = safetensors_numpy.load_file(tmp_path / "model.safetensors")
    assert arrays.keys() == mlp.state_dict().keys()
    for name, array in mlp.state_dict().items():
        assert np.array_equal(arrays[name], array)


def test_json_cannot_hold_nan_and_says_so(tmp_path, mlp):
    mlp.biases(1)[0] = np.nan
    with pytest.raises(pb.FileFormatError, match=r"Save as \.safetensors"):
        mlp.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())
    mlp.save(tmp_path / "model.safetensors")
    assert np.isnan(pb.Mlp.load(tmp_path / "model.safetensors").biases(1)[0])


@pytest.mark.parametrize("name", ["model", "model.npz", "model.JSON"])
def test_other_suffixes_are_refused(tmp_path, mlp, name):
    for call in (mlp.save, pb.Mlp.load):
        with pytest.raises(pb.FileFormatError, match=r"ends in \.json or \.safetensors"):
            call(tmp_path / name)


def test_a_file_that_is_not_there_is_just_that(tmp_path):
    for suffix in SUFFIXES:
        with pytest.raises(FileNotFoundError):
            pb.Mlp.load(tmp_path / f"none{suffix}")


# -- damaged and hostile files --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_truncation_is_an_error(tmp_path, suffix):
    whole = (GOLDEN / f"version_1{suffix}").read_bytes()
    path = tmp_path / f"cut{suffix}"
    for length in range(0, len(whole) - 3, 7):  # the last bytes of the JSON are a brace and the end of its line
        path.write_bytes(whole[:length])
        with pytest.raises(pb.FileFormatError):
            pb.Mlp.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_bytes_give_a_network_or_an_error(tmp_path, suffix):
    whole = bytearray((GOLDEN / f"version_1{suffix}").read_bytes())
    generator = np.random.default_rng(0)
    path = tmp_path / f"damaged{suffix}"
    errors = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for place in generator.integers(0, len(whole), 3):
            damaged[place] = generator.integers(0, 256)
        path.write_bytes(damaged)
        try:
            assert isinstance(pb.Mlp.load(path), pb.Mlp)
        except pb.FileFormatError:
            errors += 1
    assert errors > 100


def changed(change):
    description = json.loads((GOLDEN / "version_1.json").read_text())
    change(description)
    return json.dumps(description)


HOSTILE = {
    "empty": "",
    "not JSON": "{",
    "no object": "[1, 2]",
    "deep": "[" * 100_000,
    "another format": changed(lambda d: d.update(format="other")),
    "no format": changed(lambda d: d.pop("format")),
    "a later version": changed(lambda d: d.update(version=2)),
    "a version that is no number": changed(lambda d: d.update(version=True)),
    "an unknown field": changed(lambda d: d.update(surprise=1)),
    "a missing field": changed(lambda d: d.pop("activations")),
    "huge sizes": changed(lambda d: d.update(sizes=[3, 10**12, 4, 2])),
    "sizes beyond all numbers": changed(lambda d: d.update(sizes=[3, 10**400, 4, 2])),
    "negative sizes": changed(lambda d: d.update(sizes=[3, -5, 4, 2])),
    "sizes that are none": changed(lambda d: d.update(sizes=[3, "5", 4, 2])),
    "other sizes": changed(lambda d: d.update(sizes=[3, 6, 4, 2])),
    "one size": changed(lambda d: d.update(sizes=[3], activations=[], layers=[])),
    "too few activations": changed(lambda d: d["activations"].pop()),
    "an unknown activation": changed(lambda d: d.update(activations=["relu", "relu", "eval"])),
    "an activation that is none": changed(lambda d: d.update(activations=["relu", "relu", []])),
    "another dtype": changed(lambda d: d.update(dtype="object")),
    "a dtype that is none": changed(lambda d: d.update(dtype=[])),
    "no layers": changed(lambda d: d.pop("layers")),
    "too few layers": changed(lambda d: d["layers"].pop()),
    "a layer that is none": changed(lambda d: d["layers"].__setitem__(0, 3)),
    "ragged weights": changed(lambda d: d["layers"][0]["weights"][1].pop()),
    "no weights": changed(lambda d: d["layers"][0].update(weights=[])),
    "weights as text": changed(lambda d: d["layers"][0]["weights"][0].__setitem__(0, "1.0")),
    "true as a weight": changed(lambda d: d["layers"][0]["weights"][0].__setitem__(0, True)),
    "nested weights": changed(lambda d: d["layers"][0]["weights"][0].__setitem__(0, [1.0])),
    "NaN": changed(lambda d: d["layers"][0]["biases"].__setitem__(0, float("nan"))),
    "infinity": changed(lambda d: d["layers"][0]["biases"].__setitem__(0, 1e39)),
    "an integer beyond all floats": changed(lambda d: d["layers"][0]["biases"].__setitem__(0, 10**400)),
    "an integer of too many digits": '{"version": ' + "1" * 5000 + "}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_json_is_refused_within_bounded_memory(tmp_path, name):
    path = tmp_path / "model.json"
    path.write_text(HOSTILE[name])
    tracemalloc.start()
    try:
        with pytest.raises(pb.FileFormatError, match=r"model\.json: not a sound Mlp file"):
            pb.Mlp.load(path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_json_that_is_not_text(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(pb.FileFormatError, match="not text"):
        pb.Mlp.load(path)


@pytest.mark.parametrize(
    ("arrays", "metadata", "match"),
    [
        ({}, {}, "no 'pullback.Mlp'"),
        ({}, {"pullback.Mlp": "{"}, "not JSON"),
        ({}, {"pullback.Mlp": "{}"}, "does not say"),
        ({}, None, "it has the arrays"),
        ({"layers.0.weight": np.ones((2, 3), np.float32)}, None, "it has the arrays"),
        (
            {"layers.0.weight": np.ones((3, 2), np.float32), "layers.0.bias": np.ones(2, np.float32)},
            None,
            r"shape \(3, 2\)",
        ),
        ({"layers.0.weight": np.ones((2, 3)), "layers.0.bias": np.ones(2)}, None, "is float64"),
    ],
)
def test_hostile_safetensors_are_refused(tmp_path, arrays, metadata, match):
    sound = {"format": "pullback.Mlp", "version": 1, "dtype": "float32", "sizes": [3, 2], "activations": ["identity"]}
    path = tmp_path / "model.safetensors"
    pb.save(arrays, path, {"pullback.Mlp": json.dumps(sound)} if metadata is None else metadata)
    with pytest.raises(pb.FileFormatError, match=match):
        pb.Mlp.load(path)


def test_claims_of_size_allocate_nothing(tmp_path):
    claims = {
        "format": "pullback.Mlp", "version": 1, "dtype": "float64",
        "sizes": [1 << 30, 1 << 30, 1 << 30], "activations": ["relu", "relu"],
    }  # fmt: skip
    path = tmp_path / "model.safetensors"
    pb.save({}, path, {"pullback.Mlp": json.dumps(claims)})
    tracemalloc.start()
    try:
        with pytest.raises(pb.FileFormatError):
            pb.Mlp.load(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
