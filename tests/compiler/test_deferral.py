"""Signals that come inside of `signals_later` are handled at its end."""

from __future__ import annotations

import signal
import threading

import pytest

from pullback.compiler.deferral import signals_later


@pytest.fixture
def handled():
    found = []
    before = signal.signal(signal.SIGINT, lambda number, frame: found.append(number))
    yield found
    signal.signal(signal.SIGINT, before)


def test_a_handler_is_called_at_the_end(handled):
    ours = signal.getsignal(signal.SIGINT)
    with signals_later():
        signal.raise_signal(signal.SIGINT)
        assert handled == []
    assert handled == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is ours


def test_a_handler_is_called_also_where_something_fails(handled):
    with pytest.raises(ValueError, match="inside"), signals_later():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("inside")
    assert handled == [signal.SIGINT]


def test_other_threads_leave_handlers_alone(handled):
    seen = []

    def run():
        with signals_later():
            seen.append(signal.getsignal(signal.SIGINT))

    ours = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [ours]
