"""How a run is going, while it is going: a live bar on a terminal or in a notebook, lines of text elsewhere."""

from __future__ import annotations

import atexit
import os
import sys
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Callable, Iterator
from weakref import WeakSet

from .callbacks import Callback, Record
from .charts import number_text
from .endings import Ending, ending_after, ending_by
from .notebook_bar import NotebookBar, in_notebook
from .rates import rate_texts

if TYPE_CHECKING:
    from .history import History
    from .trainer import Trainer

__all__ = ["Progress"]

_REFRESH_SECONDS = 0.1  # between two drawings of the bar
_DRAWING_SHARE = 0.02  # of the time at most, on slow terminals too
_LINE_SECONDS = 5.0  # between two lines within an epoch
_EPOCH_SECONDS = 1.0  # between two lines of epochs above the bar, which shows the short ones itself
_WEIGHT = 0.05  # of a new value in a moving average
_STYLES = {"": "bar.complete", "finished": "bar.complete", "stopped": "yellow", "failed": "red"}
_WIDEST_BAR = 40
_NARROWEST_BAR = 8


class Progress(Callback):
    """Shows how a run is going: a live bar on a terminal or in a notebook, else a line per epoch and every few seconds.

    It shows the epoch and step, the loss (smoothed), the values of the last validation, the learning rate, the
    throughput (in tokens where a record has "tokens_per_second"), the "memory_gib" that a record tells, and the time
    passed and left; and in the end, why a run did not go through to its own. The bar of a terminal is drawn by `rich`;
    where it is not installed there are lines. It writes to the standard error stream unless given another one, and
    never ends a run: if the stream breaks, it falls silent. A `Trainer` has one where somebody looks.

    Parameters
    ----------
    stream : text file, optional
        Where to write, by default the standard error stream.

    Examples
    --------
    >>> import pullback as pb, sys
    >>> from types import SimpleNamespace
    >>> progress = pb.train.Progress(sys.stdout)
    >>> trainer = SimpleNamespace(step=0, total_steps=200, total_epochs=2)
    >>> progress.on_start(trainer)
    >>> progress.on_epoch(trainer, {"step": 100, "epoch": 1, "loss": 0.25, "validation_accuracy": 0.9, "seconds": 3.0})
    epoch 1/2  step 100/200  loss 0.25  validation_accuracy 0.9  elapsed 0:03  left ...
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._given = stream
        self._stream: IO[str] | None = None
        self._live: Any = None
        self._status = Status()

    def on_start(self, trainer: Trainer) -> None:
        self._stop()
        _active.add(self)
        self._stream = sys.stderr if self._given is None else self._given  # None where there is no console at all
        self._status = Status()
        self._status.begin(trainer)
        self._next = self._next_epoch = 0.0  # when to draw the bar, and when to write a line of an epoch
        self._unsaid: float | None = None  # the loss of an epoch that had no line
        self._is_terminal = False
        self._next_line = self._status.started + _LINE_SECONDS
        self._line_at = self._status.at  # the step of the last line
        self._guarded(self._start_bar)

    def on_step(self, trainer: Trainer, record: Record) -> None:
        now = time.monotonic()
        self._status.step(record)
        self._unsaid = None
        if self._live is not None:
            if now >= self._next:
                self._guarded(self._draw)
                spent = time.monotonic() - now
                self._next = now + max(_REFRESH_SECONDS, spent / _DRAWING_SHARE)
        elif now >= self._next_line:
            self._line(self._status.parts())

    def on_validation(self, trainer: Trainer, record: Record) -> None:
        self._status.validation(record)
        self._guarded(self._draw)

    def on_epoch(self, trainer: Trainer, record: Record) -> None:
        self._status.epoch(record)
        if self._live is not None or self._is_terminal:
            if time.monotonic() < self._next_epoch:
                self._unsaid = record["loss"]
                return
            self._next_epoch = time.monotonic() + _EPOCH_SECONDS
        self._line(self._status.parts(record["loss"]))

    def on_end(self, trainer: Trainer, history: History) -> None:
        self._finish(ending_after(history))

    def on_error(self, trainer: Trainer, error: BaseException) -> None:
        self._finish(ending_by(error))

    def _finish(self, ending: Ending) -> None:
        """Show where the run ended, and why unless it is finished."""
        self._status.ending = ending
        if self._live is None and self._status.at != self._line_at:  # what came last has no line yet
            self._line(self._status.parts(self._unsaid))
        if ending.reason and not isinstance(self._live, NotebookBar):  # which has it in front of everything
            self._line([str(ending)])
        self._guarded(self._draw)
        self._stop()
        _active.discard(self)

    # -- output --------------------------------------------------------------------------------------

    def _start_bar(self) -> None:
        stream = self._stream
        if self._given is None and in_notebook():
            self._live = NotebookBar(self._status)
            self._draw()
            return
        if stream is None or not stream.isatty():
            return
        self._is_terminal = True
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            _hint_at_bar(stream)
            return
        console = Console(file=stream)
        if console.is_dumb_terminal or console.is_jupyter:
            return
        console.on_broken_pipe = _raise_again  # rich's own ends the program
        self._live = Live(
            _Bar(self._status),
            console=console,
            auto_refresh=False,  # drawn from on_step: no thread that competes with the training
            redirect_stdout=_same_terminal(sys.stdout),  # prints appear above the bar; those into a file stay there
            redirect_stderr=_same_terminal(sys.stderr),
            vertical_overflow="crop",
        )
        atexit.register(self._stop)  # an exit that passes no callback must not leave the cursor hidden
        self._live.start()
        self._draw()

    def _draw(self) -> None:
        if self._live is not None:
            self._live.refresh()

    def _line(self, parts: list[str]) -> None:
        self._next_line = time.monotonic() + _LINE_SECONDS
        self._line_at = self._status.at
        self._guarded(lambda: self._print("  ".join(parts)))

    def _print(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        elif self._stream is not None:
            print(text, file=self._stream, flush=True)

    def _guarded(self, write: Callable[[], None]) -> None:
        """Do what writes; if the stream is gone or cannot take it, write no more."""
        try:
            write()
        except (OSError, ValueError):  # a closed pipe, a closed file, a character the stream has no code for
            self._stop()
            self._stream = None

    def _stop(self) -> None:
        """Give the terminal back."""
        live, self._live = self._live, None
        if live is not None:
            atexit.unregister(self._stop)
            with suppress(OSError, ValueError):  # the prints of others have their stream back by then
                live.stop()


class Status:
    """What is to be shown."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.at = self.first = self._epoch = 0
        self.total: int | None = None
        self._epochs: int | None = None
        self._loss = _Average()
        self._rates: list[tuple[str, str]] = []
        self.ending: Ending | None = None
        self._memory: float | None = None
        self._learning_rate: float | None = None
        self._elapsed: float | None = None
        self._validation: dict[str, float] = {}

    def begin(self, trainer: Trainer) -> None:
        self.at = self.first = trainer.step
        self.total = trainer.total_steps
        self._epochs = trainer.total_epochs

    def step(self, record: Record) -> None:
        self.at, self._epoch, self._elapsed = record["step"], record["epoch"], record.get("seconds")
        self._loss.add(record["loss"])
        self._learning_rate = record.get("learning_rate")
        self._rates = rate_texts(record)
        self._memory = record.get("memory_gib")

    def validation(self, record: Record) -> None:
        self._validation |= {name: value for name, value in record.items() if name.startswith("validation_")}

    def epoch(self, record: Record) -> None:
        self.at, self._epoch, self._elapsed = record["step"], record["epoch"], record.get("seconds")
        self._rates = rate_texts(record) or self._rates
        self.validation(record)

    def place(self) -> list[str]:
        epochs = f"/{self._epochs:,}" if self._epochs else ""
        total = f"/{self.total:,}" if self.total else ""
        return [f"epoch {self._epoch:,}{epochs}", f"step {self.at:,}{total}"]

    def loss(self, mean: float | None = None) -> list[str]:
        """The loss: smoothed, or the mean of an epoch where one is over."""
        loss = self._loss.value if mean is None else mean
        return [] if loss is None else [f"loss {number_text(loss)}"]

    def others(self) -> list[str]:
        """The other values in the order of their importance."""
        texts = [f"{name} {number_text(value)}" for name, value in self._validation.items()]
        if self._learning_rate is not None:
            texts.append(f"learning_rate {number_text(self._learning_rate)}")
        rates = [f"{value} {unit}" for unit, value in self._rates]
        memory = [] if self._memory is None else [f"{self._memory:.2f} GiB"]
        return [*texts, *rates[:1], *memory, *rates[1:]]

    def times(self) -> list[str]:
        now = time.monotonic() - self.started
        texts = [f"elapsed {_clock(now if self._elapsed is None else self._elapsed)}"]
        done = self.at - self.first
        if self.total and done and self.ending is None:
            texts.append(f"left {_clock(now / done * max(0, self.total - self.at))}")
        return texts

    def parts(self, mean_loss: float | None = None) -> list[str]:
        return [*self.place(), *self.loss(mean_loss), *self.others(), *self.times()]


class _Bar:
    """The status as one line for rich, which leaves out the least important where the terminal is narrow."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        status = self._status
        place = status.place()
        room = options.max_width - sum(len(text) + 2 for text in place)
        if room < 0:  # hardly any: where it is, and no more
            yield Text("  ".join(place), no_wrap=True, overflow="crop")
            return
        bar_width = _NARROWEST_BAR if status.total and room >= _NARROWEST_BAR + 2 else 0
        room -= bar_width + 2 if bar_width else 0
        loss, times, others = status.loss(), "  ".join(status.times()), status.others()
        ended = [status.ending.status] if status.ending and status.ending.reason else []
        shown: list[str] = []
        for text in [*ended, *loss, times, *others]:
            if len(text) + 2 <= room:
                shown.append(text)
                room -= len(text) + 2
        if times in shown:
            shown.append(shown.pop(shown.index(times)))
        row: list[Any] = [Text("  ".join(place), style="bold", no_wrap=True)]
        if bar_width:
            style = _STYLES[status.ending.status if status.ending else ""]
            width = min(_WIDEST_BAR, bar_width + room)
            row.append(ProgressBar(status.total, status.at, width=width, complete_style=style))
        if shown:
            row.append(Text("  ".join(shown), no_wrap=True))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_row(*row)
        yield table


class _Average:
    """An exponential moving average that does not lean towards where it began, and passes over what is not finite."""

    def __init__(self) -> None:
        self._sum = self._weight = 0.0
        self.value: float | None = None

    def add(self, value: float) -> None:
        if value - value != 0.0:
            self.value = value  # shown as it is until the next finite one
            return
        self._sum += _WEIGHT * (value - self._sum)
        self._weight += _WEIGHT * (1.0 - self._weight)
        self.value = self._sum / self._weight


_active: WeakSet[Progress] = WeakSet()  # displays of the runs under way


def someone_looks() -> bool:
    """Whether what is written to the standard error stream is seen while it is written, not kept in a file or a log.

    Nobody looks at a run inside of another one, or beside it, that is shown: there is room for one bar.
    """
    if _active:
        return False
    if in_notebook():
        return True
    try:
        return sys.stderr is not None and sys.stderr.isatty() and not os.environ.get("CI")
    except ValueError:  # it is closed
        return False


_told: set[str] = set()  # to this process's user, once


def _hint_at_bar(stream: IO[str]) -> None:
    if not _told:
        _told.add("rich")
        print("For a live progress bar: pip install 'pullback[train]'", file=stream, flush=True)


def _raise_again() -> None:
    raise  # the error that is being handled when rich calls this


def _same_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
