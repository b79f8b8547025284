"""A configuration is read whole, or everything wrong with it is named, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pullback import ConfigurationError
from pullback.cli import configuration as configurations
from pullback.cli.reading import Configuration, written

GOOD = """\
name = "mine"

[data]
kind = "regression"

[model]
kind = "mlp"

[optimizer]
kind = "adam"
lr = 0.1
"""


def parsed(text: str, *settings: str) -> Configuration:
    return configurations.FORMAT.parsed(text, "run.toml", Path("/folder"), settings)


def complaint(text: str, *settings: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parsed(text, *settings)
    return str(caught.value)


def test_defaults_are_filled_in():
    found = parsed(GOOD)
    assert found["seed"] == 0 and found["device"] == "numpy"
    assert found["data"]["samples"] == 1000
    assert found["optimizer"] == {"kind": "adam", "lr": 0.1, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0}
    assert found["schedule"] == {"kind": "constant", "warmup": 0}
    assert found["train"]["epochs"] == 10 and found["train"]["metrics"] == ["r2"]
    assert found["loss"] == {"kind": "mse"}


@pytest.mark.parametrize("name", configurations.examples())
def test_bundled_example_is_sound_and_survives_being_written(name):
    found = parsed(configurations.example_text(name))
    assert found["name"] == name
    assert parsed(written(found)) == found


def test_bundled_examples_are_these():
    assert configurations.examples() == ["charlm", "copying", "digits", "regression", "signal"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lr = 0.1", 'lr = "fast"', 'run.toml:11: optimizer.lr: expected a positive number, got "fast"'),
        ("lr = 0.1", "lr = 0", "run.toml:11: optimizer.lr: expected a positive number, got 0"),
        ("lr = 0.1", "lr = nan", "run.toml:11: optimizer.lr: expected a positive number, got nan"),
        ("lr = 0.1", f"lr = 1{'0' * 400}", "run.toml:11: optimizer.lr: expected a positive number, got 1000"),
        ("lr = 0.1", f"lr = 0x{'f' * 5000}", "11: optimizer.lr: expected a positive number, got a very long int"),
        ("lr = 0.1", f"lr = 1{'0' * 5000}", "run.toml: not valid TOML: Exceeds the limit"),
        ("lr = 0.1", f"lr = [{{{'a.' * 3000}a = 1}}]", "11: optimizer.lr: expected a positive number, got a very long"),
        ('"adam"', f"0x{'f' * 5000}", "run.toml:10: optimizer.kind: expected one of"),
        ("lr = 0.1", "lr = true", "run.toml:11: optimizer.lr: expected a positive number, got true"),
        ("lr = 0.1", "", "run.toml:9: [optimizer] is missing `lr`: a positive number"),
        ("lr = 0.1", "beta = 0.1\nlr = 1", 'run.toml:11: optimizer.beta: unknown key; did you mean "betas"?'),
        ("lr = 0.1", "speed = 0.1\nlr = 1", "run.toml:11: optimizer.speed: unknown key; known here: kind, lr, betas"),
        ("lr = 0.1", "lr = 1\nmomentum = 0.9", 'optimizer.momentum is a key of kind "sgd" or "rmsprop", and'),
        ("lr = 0.1", "lr = 1\nbetas = [0.9]", "run.toml:12: optimizer.betas: expected two numbers from 0 to below 1"),
        ('"adam"', '"adamm"', 'run.toml:10: optimizer.kind: expected one of sgd, adam, '),
        ('"adam"', '"adamm"', 'got "adamm"; did you mean "adam"?'),
        ('"adam"', "[1]", "run.toml:10: optimizer.kind: expected one of"),
        ('kind = "mlp"', "", "run.toml:6: [model] is missing `kind`: write `kind = \"...\"` with one of mlp, conv,"),
        ('"mine"', '"../up"', 'run.toml:1: name: expected a name of letters, digits, - and _, got "../up"'),
        ("[model]", "[modle]", 'run.toml:6: modle: unknown section; did you mean "model"?'),
        ("[model]", "[model]\nhidden = [0]", "run.toml:7: model.hidden: expected a list of whole numbers, 1 or more"),
        ("[data]", "train = 3\n[data]", "run.toml:3: train: expected a section [train], got 3"),
        ("[data]", "train.epochs = 0\n[data]", "run.toml:3: train.epochs: expected a whole number, 1 or more, got 0"),
        ("[data]", "train = {epochs = 2, steps = 2}\n[data]", "run.toml:3: train.steps: expected either epochs or "),
        ("[data]", 'loss.kind = "cross_entropy"\n[data]', "run.toml:3: loss.kind: expected mse or mae or huber for "),
        ("[data]", 'train.metrics = ["accuracy"]\n[data]', "run.toml:3: train.metrics: expected mse, mae, r2 for "),
        ("[data]", 'train.metrics = ["acuracy"]\n[data]', "run.toml:3: train.metrics: expected a list of metrics: "),
        ('"mlp"', '"transformer"', "run.toml:7: model.kind: expected mlp or conv for regression data, got "),
        ('"mlp"', '"conv"', 'run.toml:7: model.kind: "conv" needs pictures'),
        ('"adam"', '"sgd"\nnesterov = true', "run.toml:11: optimizer.nesterov: expected a momentum above 0"),
    ],
)  # fmt: skip
def test_mistake_is_named_with_its_line(old, new, message):
    assert message in complaint(GOOD.replace(old, new))


def test_all_mistakes_are_named_at_once_in_the_order_of_their_lines():
    text = GOOD.replace('"mine"', "3").replace('"mlp"', '"mpl"').replace("0.1", "-1") + "\n[train]\nepoch = 1\n"
    lines = complaint(text).splitlines()
    assert [line.split(":")[1] for line in lines] == ["1", "7", "11", "14"]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("a = ", "run.toml:1: not valid TOML"),
        ("\n[a\nb = 1", "run.toml:2: not valid TOML"),
        ('x = 1\ny = "abc\n', "run.toml:2: not valid TOML"),
        ("a = 1\na = 2", "run.toml:2: not valid TOML"),
        ("a = 1\n\na = 2\n", "run.toml:3: not valid TOML"),
        ("[[[", "run.toml:1: not valid TOML"),
        ("a = " + "[" * 100_000, "run.toml"),
    ],
)
def test_wrong_syntax_is_named_with_its_line(text, start):
    assert complaint(text).startswith(start)


def test_not_text(tmp_path):
    (tmp_path / "run.toml").write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(ConfigurationError, match=r"run\.toml:2: this is not UTF-8"):
        configurations.FORMAT.read(tmp_path / "run.toml")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_endings_do_not_matter(ending):
    text = GOOD.replace("0.1", "-1").replace("\n", ending)
    assert complaint(text).startswith("run.toml:11: ")


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "section", "key", "value"),
    [
        ("optimizer.lr=1e-2", "optimizer", "lr", 0.01),
        ("model.hidden=[3, 4]", "model", "hidden", [3, 4]),
        ("model.activation=gelu", "model", "activation", "gelu"),
        ('model.activation="gelu"', "model", "activation", "gelu"),
        ("train.steps = 7", "train", "steps", 7),
    ],
)
def test_setting_replaces_what_the_file_says(setting, section, key, value):
    assert parsed(GOOD, setting)[section][key] == value


def test_another_kind_takes_the_keys_of_the_old_one_away():
    assert parsed(GOOD + "eps = 0.1\n", "optimizer.kind=sgd", "optimizer.lr=2")["optimizer"]["lr"] == 2


def test_steps_take_the_place_of_epochs():
    text = GOOD + "[train]\nepochs = 3\n"
    assert parsed(text, "train.steps=70")["train"]["epochs"] is None
    assert parsed(text.replace("epochs", "steps"), "train.epochs=7")["train"]["steps"] is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("optimizer.lr=-1", "--set optimizer.lr=-1: optimizer.lr: expected a positive number, got -1"),
        ("optimizer.lr", "--set optimizer.lr: expected section.key=value"),
        ("=3", "--set =3: expected section.key=value"),
        ("name.x=3", "--set name.x=3: name is not a section"),
        ("optimiser.lr=1", '--set optimiser.lr=1: optimiser: unknown section; did you mean "optimizer"?'),
        ("train.steps=1\nname = 'b'", "expected a whole number"),
    ],
)
def test_wrong_setting(setting, message):
    assert message in complaint(GOOD, setting)


# -- paths and kinds -------------------------------------------------------------------------------


def test_paths_are_relative_to_the_file(tmp_path):
    text = GOOD.replace('kind = "regression"', 'kind = "csv"\npath = "a/b.csv"\ntarget = "y"\ntask = "regression"')
    (tmp_path / "run.toml").write_text(text)
    assert configurations.FORMAT.read(tmp_path / "run.toml")["data"]["path"] == str(tmp_path / "a" / "b.csv")


def test_text_with_odd_characters_survives_being_written():
    text = GOOD.replace('"regression"', '"text"\nsource = "a \\"\\\\ \\u0001 \\u00e9"').replace("mlp", "transformer")
    found = parsed(text)
    assert found["data"]["source"] == '/folder/a "\\ \x01 é'
    assert parsed(written(found)) == found


@pytest.mark.parametrize("section", configurations.SECTIONS)
def test_every_kind_has_sound_defaults(section):
    for kind, keys in configurations.SECTIONS[section].kinds.items():
        for name, key in keys.items():
            assert key.default in (..., None) or key.check.accepts(key.default), (kind, name)


def test_a_path_with_a_nul_is_named():
    text = GOOD.replace('"regression"', '"csv"\npath = "a\\u0000b"\ntask = "regression"\ntarget = "y"')
    assert 'run.toml:5: data.path: expected a text that is not empty, got "a\\u0000b"' in complaint(text)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path):
    """A device such as /dev/zero has no end."""
    path = tmp_path / "run.toml"
    path.write_text(GOOD + "#" * (1 << 16))
    with pytest.raises(ConfigurationError, match="at most 65,536 bytes"):
        configurations.FORMAT.read(path)
    with pytest.raises(ConfigurationError, match="at most 65,536 bytes"):
        configurations.FORMAT.read(Path("/dev/zero"))
