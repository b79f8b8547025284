"""The plan of a run's memory: what it will be, without loading anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import pullback as pb
from pullback.finetune.plan import memory_plan
from pullback.finetune.run import Run
from pullback.finetune.texts import Texts
from pullback.models.config import QUANTIZED, read_config

from ..backends.installed import needs_llvmlite, needs_ml_dtypes
from .tiny import Tiny, write_hollow, write_tiny

pytestmark = needs_llvmlite
STEP, SAVED = "a step, of which", "  kept for the backward pass"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Tiny:
    return write_tiny(tmp_path_factory.mktemp("plan"))


def planned(settings) -> dict[str, int]:
    return dict(memory_plan(settings, read_config(settings.model)))


def used(settings) -> dict[str, int]:
    """The memory of the compiled step of a run that was made."""
    run = Run(settings, Texts(settings), None)
    run.fit()
    compiled = run.trainer._updater._compiled
    assert compiled is not None, run.trainer.why_not_compiled
    return (compiled._compiled if settings.accumulate == 1 else compiled._add).memory


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seq": 192, "batch": 4, "checkpointing": "balanced"},
        {"seq": 192, "batch": 8, "checkpointing": "layers", "rank": 8},
        {"seq": 96, "batch": 8, "checkpointing": "2MiB"},
        {"batch": 4, "accumulate": 2, "dropout": 0.1},
        {"dora": True, "targets": ("q_proj", "down_proj")},
        pytest.param({"seq": 96, "dtype": "bfloat16"}, marks=needs_ml_dtypes),
        {"seq": 96, "dtype": "float16", "checkpointing": "layers"},
        {"seq": 96, "device": "torch:cpu"},
        {"seq": 96, "quant": "int8"},
        {"seq": 96, "quant": "int8", "checkpointing": "layers", "device": "torch:cpu"},
    ],
    ids=str,
)
def test_a_step_takes_what_was_planned(tiny, changes):
    if changes.get("device"):
        pytest.importorskip("torch")
    settings = tiny.settings(**{**changes, "steps": 1})
    plan, found = planned(settings), used(settings)
    scratch = 128 << 10  # of kernels, whatever the size of the step
    assert abs(plan[STEP] - found["arena"]) <= 0.1 * found["arena"] + scratch
    assert plan[SAVED] == pytest.approx(found["saved"], rel=0.01)


def test_checkpointing_makes_the_plan_smaller(tiny):
    plans = {how: planned(tiny.settings(seq=256, checkpointing=how)) for how in ("none", "balanced", "layers", "1MiB")}
    steps, saved = ({how: plan[key] for how, plan in plans.items()} for key in (STEP, SAVED))
    assert all(steps[how] < 0.75 * steps["none"] for how in ("balanced", "layers", "1MiB"))
    assert saved["layers"] < saved["balanced"] < saved["none"] and saved["1MiB"] < 0.5 * saved["none"]


def test_the_lines_of_a_plan_add_up(tiny):
    plan = planned(tiny.settings(accumulate=2, dtype="float16"))
    run = Run(settings := tiny.settings(accumulate=2, dtype="float16"), Texts(settings), None)
    parameters = run.model.parameters()
    learned = sum(tensor.nbytes for tensor in parameters if tensor.requires_grad)
    assert plan["adapters"] == plan["sums of gradients"] == learned
    assert plan["AdamW"] == 2 * learned
    assert plan["frozen weights"] == sum(t.nbytes for t in run.model.parameters() if not t.requires_grad)
    assert plan["together"] == sum(n for name, n in plan.items() if name != "together" and not name.startswith(" "))


def test_frozen_weights_are_mapped_unless_they_are_converted_or_moved(tiny):
    kinds = (
        ({}, True),
        ({"device": "torch:cpu"}, True),
        ({"dtype": "float16"}, False),
        ({"device": "torch:cuda"}, False),
        ({"quant": "int8"}, False),
    )
    for changes, is_mapped in kinds:
        assert ("frozen weights, mapped from their files" in planned(tiny.settings(**changes))) == is_mapped


def test_quantized_weights_take_a_byte_each_and_are_expanded_one_by_one(tiny, tmp_path):
    folder = write_hollow(
        tmp_path / "wide", tiny, hidden_size=512, intermediate_size=1024, num_attention_heads=8, num_key_value_heads=4,
        head_dim=64, num_hidden_layers=6,
    )  # fmt: skip
    plans = {}
    for quant in ("none", "int8"):
        plans[quant] = planned(replace(tiny.settings(quant=quant, batch=1, rank=1), model=str(folder), dtype="float32"))
    run = pb.quant.quantize(pb.models.load(folder, dtype="float32"))
    frozen = sum(tensor.nbytes for tensor in (*run.parameters(), *run.buffers()))
    assert plans["int8"]["frozen weights"] == frozen < 0.4 * plans["none"]["frozen weights"]
    layer = sum(layer.weight.nbytes for layer in run.model.layers[0].modules() if isinstance(layer, pb.nn.Linear))
    assert plans["int8"][STEP] < plans["none"][STEP] + 0.6 * layer


@pytest.mark.parametrize("quant", ["none", "nf4"])
@pytest.mark.parametrize("style", ["dtype", "torch_dtype"])
def test_a_folder_without_weights_is_planned_as_its_configuration_says(tiny, tmp_path, style, quant):
    expected = planned(tiny.settings(dtype="float16", quant=quant))
    settings = replace(tiny.settings(quant=quant), model=str(without_weights(tiny, tmp_path, {style: "float16"})))
    found = planned(settings)
    frozen = next(value for name, value in found.items() if name.startswith("frozen weights"))
    assert (frozen, found[STEP], found["together"]) == (
        expected["frozen weights"], expected[STEP], expected["together"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"dtype": "int8"}, "'int8', which is no floating-point"), ({"quantization_config": QUANTIZED}, "quantized")],
    ids=["dtype", "quantized"],
)
def test_a_configuration_that_does_not_say_what_the_weights_are(tiny, tmp_path, changes, message):
    folder = without_weights(tiny, tmp_path, changes)
    with pytest.raises(pb.ConfigurationError, match=rf"config\.json: .*{message}"):
        planned(replace(tiny.settings(), model=str(folder)))


def without_weights(tiny: Tiny, folder: Path, changes: dict[str, object]) -> Path:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tiny.model / name).read_bytes())
    entries = json.loads((tiny.model / "config.json").read_text())
    del entries["dtype"]
    (folder / "config.json").write_text(json.dumps(entries | changes))
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what was touched")
@pytest.mark.parametrize("dora", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_plan_of_weights_larger_than_the_memory_touches_none_of_them(tiny, tmp_path, dora):
    folder = write_hollow(
        tmp_path / "large", tiny, hidden_size=8192, intermediate_size=65536, num_attention_heads=64,
        num_key_value_heads=8, head_dim=128, num_hidden_layers=6,
    )  # fmt: skip
    assert os.path.getsize(folder / "model.safetensors") > 20e9
    targets = ["q_proj"] if dora else ["all-linear"]
    program = """
import re, sys
from pathlib import Path
from pullback.cli import main
code = main(sys.argv[1:])
# getrusage would also tell of the process that this one was started by
print("peak", *re.findall(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()), "exit", code)
"""
    arguments = ["finetune", "--model", folder, "--data", tiny.data, "--dry-run", "--seq", "64", "--rank", "2"]
    arguments += ["--dora" if dora else "--no-dora", "--targets", *targets]
    out = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(pb.__file__).parents[1])},
    )  # fmt: skip
    *shown, last = out.stdout.splitlines()
    assert last.endswith("exit 0"), out.stderr
    assert int(last.split()[1]) < 700_000, "kilobytes"
    assert any(line.startswith("frozen weights, mapped") and "GiB" in line for line in shown)


def test_a_device_need_not_be_here_but_its_library_must_be_known(tiny):
    assert planned(tiny.settings(device="torch:cuda:7"))["together"] > 0
    with pytest.raises(pb.DeviceError, match="unknown device 'abacus'; known here: 'numpy'"):
        planned(tiny.settings(device="abacus"))


def test_a_step_that_cannot_be_compiled_has_no_plan(tiny):
    with pytest.raises(pb.ConfigurationError, match=r"its memory is not planned: pb\.compile cannot make a program"):
        planned(tiny.settings(seq=256, accumulate=2, checkpointing="1B"))


def test_planning_needs_the_compiler(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    with pytest.raises(pb.ConfigurationError, match=r"needs llvmlite .*pip install 'pullback\[compile\]'"):
        planned(tiny.settings())
