"""The texts of the example: what comes after what, told in sentences, and asked in chats."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..random import Generator

_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS = "January February March April May June July August September October November December"
_ONES = "one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_PLANETS = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune"
_NOTES = "do re mi fa so la ti"

_ECHOES = ("Say {}.", "Write {}, please.", "What is {}?", "Do you know {}?")

QUESTION = "What comes after forty-two?"
_HELD_OUT = 5  # of every so many pairs one is asked for validation alone


def pairs() -> list[tuple[str, str]]:
    """Things and what comes after them."""
    numbers = [*_ONES.split(), *_TEENS.split()]
    for ten in _TENS.split():
        numbers += [ten, *(f"{ten}-{one}" for one in _ONES.split())]
    lists = [_DAYS.split(), _MONTHS.split(), numbers, _PLANETS.split(), _NOTES.split()]
    return [pair for names in lists for pair in pairwise(names)]


def sentences() -> list[str]:
    """What the tiny model reads before it is fine-tuned, every pair among it."""
    found = []
    for before, after in pairs():
        found += [
            f"After {before} comes {after}.",
            f"{after} comes after {before}.",
            f"Before {after} there is {before}.",
        ]
    return found


def chats() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What it is fine-tuned on, and other pairs to see whether it has learned to answer."""
    order = Generator(0).permutation(len(pairs())).numpy().tolist()
    asked = [pairs()[number] for number in order]
    held_out = [pair for pair in asked[::_HELD_OUT] if pair[0] != "forty-two"] + [("forty-two", "forty-three")]
    learned = [pair for pair in asked if pair not in held_out]
    return [_chat(*pair) for pair in learned], [_chat(*pair) for pair in held_out]


def echoes() -> list[dict[str, Any]]:
    """Chats of another kind, by which the tiny model knows what a chat looks like."""
    names = sorted({name for pair in pairs() for name in pair})
    return [_turns(form.format(name), f"{name}.") for name in names for form in _ECHOES]


def _chat(before: str, after: str) -> dict[str, Any]:
    return _turns(f"What comes after {before}?", f"After {before} comes {after}.")


def _turns(question: str, answer: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}
