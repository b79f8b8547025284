"""Sequences that are made up: a signal of several channels to forecast, and marked tokens to copy out of others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ConfigurationError
from ..random import Generator

#: What a target is where nothing is asked for (see `pb.cross_entropy`).
NOT_ASKED = -100
_DAY, _WEEK = 24, 168


def signal(length: int, channels: int, noise: float, seed: int) -> Any:
    """Hourly measurements of a few neighbouring places, (length, channels): days and weeks, weather, noise.

    Each place has some of what its neighbour had three hours before.
    """
    generator = Generator(seed)
    phases = generator.uniform((channels, 4)).numpy().astype(np.float64)
    shocks = generator.normal((length, channels)).numpy().astype(np.float64)
    errors = generator.normal((length, channels)).numpy().astype(np.float64)
    hours = np.arange(length)[:, None]
    wave = lambda period, phase: np.sin(2 * math.pi * (hours / period + phase))
    weather = np.zeros((length, channels))
    for t in range(1, length):
        weather[t] = 0.98 * weather[t - 1] + 0.12 * shocks[t]
    days = wave(_DAY, 0.15 * phases[:, 0]) * (1 + 0.4 * wave(_WEEK, phases[:, 1])) + 0.4 * wave(_DAY / 2, phases[:, 2])
    whole = days + 0.5 * wave(_WEEK, phases[:, 3]) + weather
    for channel in range(1, channels):
        whole[3:, channel] += 0.5 * whole[:-3, channel - 1]
    return whole + noise * errors * (1 + 0.5 * np.abs(days))


def windows(series: Any, length: int, stride: int) -> tuple[Any, Any]:
    """Stretches of a series (steps, channels), and at each of their steps what comes next."""
    if len(series) <= length:
        raise ConfigurationError(
            f"a part of the signal has {len(series)} steps, and needs more than data.context = {length}. Choose a "
            "longer signal or a smaller context."
        )
    starts = np.arange(0, len(series) - length, stride)
    places = starts[:, None] + np.arange(length + 1)
    found = series[places]
    return found[:, :-1], found[:, 1:]


def copying(samples: int, length: int, marked: int, symbols: int, seed: int) -> tuple[Any, Any]:
    """Token sequences with `marked` symbols at any places among `length` tokens of nothing, and then as many questions.

    The answers are the symbols in their order. Where they stand changes from sample to sample, so that no filter which
    is the same at all times finds them. Symbols are numbered from 0, then come nothing and the question.
    """
    if marked > length:
        raise ConfigurationError(f"data.marked: expected at most data.length = {length}, got {marked}.")
    generator = Generator(seed)
    drawn = generator.integers(0, symbols, (samples, marked)).numpy()
    order = np.argsort(generator.uniform((samples, length)).numpy(), axis=1)[:, :marked]
    tokens = np.full((samples, length + marked), symbols, np.int64)
    np.put_along_axis(tokens, np.sort(order, axis=1), drawn, axis=1)
    tokens[:, length:] = symbols + 1
    targets = np.full(tokens.shape, NOT_ASKED, np.int64)
    targets[:, length:] = drawn
    return tokens, targets
