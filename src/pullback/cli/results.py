"""What a finished run ends with: figures on the test data, a picture or a sample of text, the weights."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Iterator, Mapping

import numpy as np

from ..autodiff.creation import asarray
from ..files.tensors import save
from ..modes import no_grad
from ..random import Generator
from ..train.charts import standalone
from ..train.pictures import image_grid
from ..train.run_folder import REPORT
from . import folders, forecasts
from .configuration import task_of
from .datasets import Data

_SAMPLE_LENGTH = 400
_PICTURES = 96


def written(trainer: Any, test: Any, data: Data, configuration: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Write the results of a run to its folder; the lines to show for them."""
    figures = trainer.evaluate(test)
    is_text, is_digits = task_of(configuration) == "text", configuration["data"]["kind"] == "digits"
    is_signal = configuration["data"]["kind"] == "signal"
    streamed = ""
    if is_text:
        figures["bits_per_character"] = figures["loss"] / math.log(2)
    folders.TRAIN.write(folder, folders.RESULTS, json.dumps({"steps": trainer.step, **figures}, indent=2) + "\n")
    with trainer.average.applied() if trainer.average is not None else nullcontext():
        save(trainer.model.state_dict(), folders.TRAIN.own_path(folder, folders.WEIGHTS))
        sample = _sample(trainer.model, data, configuration["seed"]) if is_text else ""
        if is_digits:
            folders.TRAIN.write(folder, folders.PICTURE, _drawn(trainer.model, data))
        if is_signal:
            folders.TRAIN.write(folder, folders.PICTURE, standalone(forecasts.charts(trainer.model, data)[0]))
            streamed = forecasts.streamed(trainer.model, data, compiles=trainer.why_not_compiled is None)

    if is_text:
        folders.TRAIN.write(folder, folders.SAMPLE, sample)
        yield "a sample of what it writes:"
        yield from ("    " + line for line in sample.splitlines())
    yield f"after {trainer.step} steps, on {len(data.test)} samples for testing:"
    for name, value in figures.items():
        yield f"test {name.replace('_', ' ')} {_figure(name, value)}"
    if is_signal:
        yield streamed
    made = {"report": REPORT, "weights": folders.WEIGHTS, "results": folders.RESULTS}
    if is_digits or is_signal:
        made["picture"] = folders.PICTURE
    for name, file in made.items():
        yield f"{name + ':':<9}{(folder / file).resolve()}"


def _figure(name: str, value: float) -> str:
    return f"{value:.1%}" if name in ("accuracy", "f1") else f"{value:.4g}"


def _sample(model: Any, data: Data, seed: int) -> str:
    """Text that the model goes on with after a line's end."""
    numbers = {name: number for number, name in enumerate(data.names)}
    start = numbers.get("\n", 0)
    tokens = model.continued([start], _SAMPLE_LENGTH, Generator(seed), temperature=0.8)
    return "".join(data.names[token] for token in tokens[1:])


def _drawn(model: Any, data: Data) -> str:
    """Test pictures and what the model says of them, those where it is wrong first."""
    pictures, right = data.test[:]
    model.eval()
    with no_grad():
        device = next(iter(model.parameters())).device
        scores = model(asarray(pictures, device=device)).to_device("numpy").numpy()
    said = np.argmax(scores, axis=1)
    order = np.argsort(said == right, kind="stable")[:_PICTURES]
    captions = [data.names[said[i]] + ("" if said[i] == right[i] else f", is {data.names[right[i]]}") for i in order]
    ink = np.round(255 * (1 - pictures[order, 0])).astype(np.uint8)
    return image_grid(ink, captions, wrong=[bool(said[i] != right[i]) for i in order], columns=12)
