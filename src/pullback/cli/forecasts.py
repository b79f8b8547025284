"""What a model of a signal forecasts, as charts; and how it streams: a step as it comes, with a state."""

from __future__ import annotations

import time
from typing import Any, Callable

import numpy as np

from ..autodiff.creation import asarray
from ..compiler.calling import compile
from ..modes import no_grad
from ..train.charts import Line, line_chart
from .datasets import Data, signal_stride

_MOST_CHARTS = 4
_FORECAST = 0.5  # of a window that is forecast from the steps before
_STREAMED = 2000  # steps at most


def charts_of(data: Data) -> Callable[[Any], list[str]]:
    """The charts of a trainer's model, for its report."""
    return lambda trainer: charts(trainer.model, data)


def charts(model: Any, data: Data) -> list[str]:
    """A chart for each of the first channels: the last window for testing, and the forecast of its second half.

    A forecast goes on from what was measured in the first half, and from then on from what it said itself.
    """
    window = data.test[len(data.test) - 1][0]
    seen = max(1, round(len(window) * (1 - _FORECAST)))
    said = forecast(model, window[:seen], len(window) - seen)
    made = []
    for channel in range(min(window.shape[1], _MOST_CHARTS)):
        measured = [(float(t), float(value)) for t, value in enumerate(window[:, channel])]
        predicted = [measured[seen - 1], *((float(seen + t), float(value)) for t, value in enumerate(said[:, channel]))]
        lines = [Line("measured", measured, 0), Line("forecast", predicted, 1)]
        title = f"Channel {channel + 1}: {len(said)} steps ahead"
        made.append(line_chart(lines, title=title, width=400, height=240))
    return made


def forecast(model: Any, seen: Any, count: int) -> Any:
    """The `count` steps that a model expects after those (steps, channels) that were seen."""
    was_training, device = model.training, model.head.weight.device
    model.eval()
    said = []
    with no_grad():
        x = asarray(seen[None], device=device)
        whole, state = model(x, model.initial_state(1, x.dtype, device))
        step = whole[:, -1]
        for number in range(count):
            said.append(step.to_device("numpy").numpy()[0])
            if number + 1 < count:
                step, state = model.step(step, state)
    model.train(was_training)
    return np.stack(said) if said else np.zeros((0, seen.shape[1]), seen.dtype)


def streamed(model: Any, data: Data, compiles: bool) -> str:
    """The signal for testing, step by step as it would come: how fast, and how far from all of it at once."""
    signal = _signal_of(data)[:_STREAMED]
    device = model.head.weight.device
    model.eval()

    def step(x: Any, state: Any) -> Any:
        with no_grad():
            return model.step(x, state)

    if compiles:
        step = compile(step)
    steps = [asarray(row[None], device=device) for row in signal]
    with no_grad():
        whole = model(asarray(signal[None], device=device)).to_device("numpy").numpy()[0]
    for x in steps[:3]:
        step(x, model.initial_state(1, x.dtype, device))  # which compiles it
    state, said = model.initial_state(1, steps[0].dtype, device), []
    began = time.perf_counter()
    for x in steps:
        out, state = step(x, state)
        said.append(out)
    seconds = time.perf_counter() - began
    apart = np.abs(np.concatenate([out.to_device("numpy").numpy() for out in said]) - whole).max()
    speed = f"{len(steps) / seconds:,.0f} steps per second"
    return f"streamed {len(steps)} steps one at a time, {speed}, at most {apart:.1g} from all of them at once"


def _signal_of(data: Data) -> Any:
    """The signal that the windows for testing are of."""
    windows = data.test[:][0]
    return np.concatenate([windows[:-1, : signal_stride(windows.shape[1])].reshape(-1, windows.shape[2]), windows[-1]])
