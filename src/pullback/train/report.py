"""The report of a run: a page with its curves, its settings and its model, to be opened in any browser."""

from __future__ import annotations

import math
import os
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterable

from ..files.atomic import atomic_write
from .callbacks import Callback, Record
from .charts import STANDALONE_BEGINNING, Line, line_chart, number_text, standalone
from .curves import Curve
from .destination import destination, name_in
from .endings import Ending, ending_after, ending_by
from .figures import count, number
from .page import BEGINNING, Chart, Table, page
from .rates import rate_texts
from .run_folder import LOSS_PICTURE, REPORT

if TYPE_CHECKING:
    from .history import History
    from .trainer import Trainer

__all__ = ["Report"]

_WRITING_SHARE = 0.02  # of the time at most goes into pages that are written while the run goes on
_WIDE, _SMALL = (820, 300), (400, 240)  # width and height of charts
_NOISY = 60  # a line of more points is also drawn smoothed
_NOT_VALUES = ("step", "epoch", "seconds")
_UNCHARTED = ("steps_per_second",)  # its curve is that of the samples, or of the tokens
_SMOOTH = ("learning_rate", "samples_per_second", "tokens_per_second")  # by themselves
_TONES = {"finished": "good", "stopped": "warning", "failed": "bad"}
_DECADES = ("loss", "gradient_norm")  # values that may need a logarithmic scale; a rate that ends near 0 does not
_TITLES = {
    "loss": ("Loss", ""),
    "learning_rate": ("Learning rate", ""),
    "gradient_norm": ("Gradient norm", ""),
    "samples_per_second": ("Throughput", "samples/s"),
    "steps_per_second": ("Steps", "steps/s"),
    "tokens_per_second": ("Throughput in tokens", "tokens/s"),
    "memory_gib": ("Most memory so far", "GiB"),
}
_NOT_SETTINGS = ("params", "param_names")  # of a group of parameters
_SETTINGS = ("schedule", "clip_norm", "accumulate", "scaler", "autocast", "average", "checkpoint_every", "seed")


class Report(Callback):
    """Writes a page about the run, by default `report.html` in the trainer's folder, and `loss.svg` beside it.

    The page has the curves of all values with what they are under the pointer, the model's layers, and the settings.
    It is one file that loads nothing from anywhere, and stays small however long the run. It is written at
    validations and epochs (but for at most a fiftieth of the time), and at the end, of which it says how the run came
    to it: finished, stopped and why, or failed, with the error. A resumed run's page has the curves from the beginning.
    A `Trainer` with a folder has one of its own.

    Parameters
    ----------
    path : str or path, optional
        The page's file, by default `report.html` in the trainer's folder.
    title : str, optional
        What the page is called, by default the folder's name.
    charts : callable, optional
        `charts(trainer)` gives further charts, as SVG texts, whenever a page is written; not where the run failed.

    Examples
    --------
    >>> import pathlib, tempfile, pullback as pb
    >>> from types import SimpleNamespace
    >>> trainer = SimpleNamespace(folder=pathlib.Path(tempfile.mkdtemp()), step=0, model=None, optimizer=None)
    >>> report = pb.train.Report()
    >>> report.on_start(trainer)
    >>> report.on_step(trainer, {"step": 1, "epoch": 1, "loss": 0.7})
    >>> report.on_end(trainer, SimpleNamespace(stop_reason=None))
    >>> sorted(path.name for path in trainer.folder.iterdir())
    ['loss.svg', 'report.html']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        title: str | None = None,
        charts: Callable[[Any], list[str]] | None = None,
    ) -> None:
        self._charts = charts
        self._given = path
        self._title = title
        self._has_begun = False
        self._next = 0.0  # when to write a page
        self._begin()

    def _begin(self) -> None:
        self._curves: dict[str, dict[str, Curve]] = {"loss": {}}  # by value, then by the data it is of
        self._began = time.time()
        self._seconds = 0.0
        self._epoch = 0
        self._rates: dict[str, float] = {}  # the last ones

    def files(self, folder: Path) -> list[str]:
        names = [name_in(folder, given, name) for given, name in self._places()]
        return [name for name in names if name is not None]

    def _places(self) -> list[tuple[Path | None, str]]:
        """Where the page and the picture go, and what they are called in a trainer's folder."""
        if self._given is None:
            return [(None, REPORT), (None, LOSS_PICTURE)]
        return [(Path(self._given), REPORT), (Path(self._given).with_name(LOSS_PICTURE), LOSS_PICTURE)]

    def _destinations(self, trainer: Trainer) -> list[Path]:
        """The paths of the page and the picture, which may be written."""
        beginnings = (BEGINNING, STANDALONE_BEGINNING)
        places = zip(self._places(), beginnings, strict=True)
        return [destination(trainer, given, name, "Report", beginning) for (given, name), beginning in places]

    def on_start(self, trainer: Trainer) -> None:
        self._destinations(trainer)  # refused now rather than at the first page
        self._has_begun = True
        self._next = 0.0
        if trainer.step == 0:  # else it goes on: after a checkpoint, or after an earlier call of fit
            self._begin()

    def on_step(self, trainer: Trainer, record: Record) -> None:
        self._take(record, {name: "train" for name in record if name not in _NOT_VALUES})

    def on_validation(self, trainer: Trainer, record: Record) -> None:
        self._take(record, {name: "validation" for name in record if name.startswith("validation_")})
        self._write_sometimes(trainer)

    def on_epoch(self, trainer: Trainer, record: Record) -> None:
        of_steps = {"loss", *_TITLES}  # these have a value for every step; the rest are metrics over the epoch
        self._take(
            record,
            {
                name: "train"
                for name in record
                if name not in _NOT_VALUES and name not in of_steps and not name.startswith("validation_")
            },
        )
        self._write_sometimes(trainer)

    def on_end(self, trainer: Trainer, history: History) -> None:
        self._finish(trainer, ending_after(history))

    def on_error(self, trainer: Trainer, error: BaseException) -> None:
        if not self._has_begun:  # it failed before it did
            return
        ending = ending_by(error)
        text = "".join(traceback.format_exception(error)) if ending.status == "failed" else None
        self._finish(trainer, ending, text)

    def _finish(self, trainer: Trainer, ending: Ending, error: str | None = None) -> None:
        self._write(trainer, str(ending), _TONES[ending.status], error)
        self._write_picture(trainer)

    def state_dict(self) -> dict[str, Any]:
        curves = {
            name: {of: curve.state_dict() for of, curve in by_data.items()} for name, by_data in self._curves.items()
        }
        return {
            "curves": curves,
            "began": self._began,
            "seconds": self._seconds,
            "epoch": self._epoch,
            "rates": self._rates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        curves: dict[str, dict[str, Curve]] = {}
        for name, by_data in state["curves"].items():
            curves[name] = {of: Curve() for of in by_data}
            for of, saved in by_data.items():
                curves[name][of].load_state_dict(saved)
        began, seconds = (number(state, name, finite=True) for name in ("began", "seconds"))
        self._epoch = count(state, "epoch")
        self._rates = {name: number(state["rates"], name, finite=True) for name in state["rates"]}
        self._curves, self._began, self._seconds = {"loss": {}, **curves}, began, seconds

    # -- collecting ----------------------------------------------------------------------------------

    def _take(self, record: Record, names: dict[str, str]) -> None:
        self._seconds, self._epoch = record.get("seconds", self._seconds), record.get("epoch", self._epoch)
        step = record["step"]
        self._rates = {name: record[name] for name in record if name.endswith("_per_second")} or self._rates
        for name, of in names.items():
            by_data = self._curves.setdefault(name.removeprefix("validation_"), {})
            curve = by_data.get(of)
            if curve is None:
                curve = by_data[of] = Curve()
            curve.add(step, record[name])

    # -- writing -------------------------------------------------------------------------------------

    def _write_sometimes(self, trainer: Trainer) -> None:
        begun = time.monotonic()
        if begun >= self._next:
            self._write(trainer, "running", "running")
            spent = time.monotonic() - begun
            self._next = begun + spent / _WRITING_SHARE

    def _write(self, trainer: Trainer, status: str, tone: str, error: str | None = None) -> None:
        model, optimizer = trainer.model, trainer.optimizer
        layers = list(_layers(model))
        now = time.time()
        text = page(
            title=self._title or f"Training of {type(model).__name__}",
            status=status,
            tone=tone,
            note=f"Began {_date(self._began)}, as of {_date(now)}.",
            written=now,
            tiles=self._tiles(trainer, sum(count for *_, count in layers)),
            charts=[
                *(self._drawn(name) for name in self._curves if name not in _UNCHARTED),
                *(map(Chart, self._charts(trainer)) if self._charts is not None and error is None else ()),
            ],
            tables=[
                Table(
                    "Values", ("value", "of", " last", " lowest", " at step", " highest", " at step"), self._values()
                ),
                Table("Settings", ("name", "value"), list(settings_of(trainer, optimizer))),
                Table(
                    "Model",
                    ("layer", "type", "shapes", " parameters"),
                    [(name, kind, shapes, f"{count:,}") for name, kind, shapes, count in layers],
                    folded=len(layers) > 12,
                ),
            ],
            error=error,
        )
        with atomic_write(self._destinations(trainer)[0]) as file:  # somebody may have put a link there since
            file.write(text.encode())

    def _write_picture(self, trainer: Trainer) -> None:
        with atomic_write(self._destinations(trainer)[1]) as file:
            file.write(standalone(self._chart("loss", *_WIDE)).encode())

    def _drawn(self, name: str) -> Chart:
        """A chart for the page; the loss is as wide as the page, and drawn once more for narrow screens."""
        if name != "loss":
            return Chart(self._chart(name, *_SMALL))
        return Chart(self._chart(name, *_WIDE), narrow=self._chart(name, *_SMALL))

    def _chart(self, name: str, width: int, height: int) -> str:
        lines = []
        for of, curve in sorted(self._curves[name].items()):
            colour, points = int(of == "validation"), curve.points()
            noisy = of == "train" and len(points) > _NOISY and name not in _SMOOTH
            lines.append(Line(of, points, colour, faint=noisy, dotted=not noisy and of == "validation"))
            if noisy:
                lines.append(Line(f"{of}, smoothed", curve.smoothed(), colour))
        title, unit = _TITLES.get(name, (name[:1].upper() + name[1:].replace("_", " "), ""))
        spans = [curve.span for by_data in self._curves.values() for curve in by_data.values() if len(curve)]
        return line_chart(
            lines,
            title=title,
            unit=unit,
            width=width,
            height=height,
            logarithmic=name in _DECADES,
            span=(min(low for low, _ in spans), max(high for _, high in spans)) if spans else None,
        )

    def _tiles(self, trainer: Trainer, parameters: int) -> list[tuple[str, str]]:
        tiles = []
        for name, by_data in self._curves.items():
            if name in _TITLES and name != "loss":
                continue
            tiles += [(f"{name}, {of}", _number(_present(curve))) for of, curve in sorted(by_data.items())]
        tiles += rate_texts(self._rates)
        total = getattr(trainer, "total_steps", None)
        steps = f"{trainer.step:,}" + (f"\u2009/\u2009{number_text(total)}" if total and total != trainer.step else "")
        return [*tiles, ("steps", steps), ("epoch", f"{self._epoch:,}"), ("time", _duration(self._seconds)),
                ("parameters", number_text(parameters))]  # fmt: skip

    def _values(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for name, by_data in self._curves.items():
            for of, curve in sorted(by_data.items()):
                finite = [point for point in curve.points() if point[1] == point[1]]
                if finite:
                    low, high = min(finite, key=lambda p: p[1]), max(finite, key=lambda p: p[1])
                    extremes = (_number(low[1]), f"{low[0]:,}", _number(high[1]), f"{high[0]:,}")
                else:
                    extremes = ("", "", "", "")
                rows.append((name, of, _number(curve.last), *extremes))
        return rows


# -- the run in words --------------------------------------------------------------------------------


def _layers(model: Any) -> Iterable[tuple[str, str, str, int]]:
    """Of every layer with parameters of its own: name, type, shapes, number of parameters."""
    if not hasattr(model, "named_parameters"):
        return
    kinds = {name: type(module).__name__ for name, module in model.named_modules()}
    layers: dict[str, list[tuple[str, Any]]] = {}
    for name, parameter in model.named_parameters():
        layer, _, own = name.rpartition(".")
        layers.setdefault(layer, []).append((own, parameter))
    for layer, parameters in layers.items():
        shapes = ", ".join(f"{own} {_shape(parameter)}" for own, parameter in parameters)
        count = sum(math.prod(parameter.shape) for _, parameter in parameters)
        yield layer or "(itself)", kinds.get(layer, ""), shapes, count


def _shape(parameter: Any) -> str:
    shape = "\u00d7".join(map(str, parameter.shape)) or "scalar"
    return shape if parameter.requires_grad else f"{shape} (frozen)"


def settings_of(trainer: Trainer, optimizer: Any) -> Iterable[tuple[str, str]]:
    """What a run was made with, by name."""
    yield "loss", _described(getattr(trainer, "loss", None))
    yield "optimizer", type(optimizer).__name__
    groups = getattr(optimizer, "param_groups", [])
    for index, group in enumerate(groups):
        values = ", ".join(f"{name}={value}" for name, value in group.items() if name not in _NOT_SETTINGS)
        yield ("parameters" if len(groups) == 1 else f"parameters, group {index}"), values
    for name in _SETTINGS:
        value = getattr(trainer, name, None)
        if value is not None:
            yield name, _described(value)


def _described(value: Any) -> str:
    """A function by its name, an object by its text or, where that is only an address, by its type."""
    if hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    kind: Any = type(value)
    return kind.__name__ if kind.__repr__ is object.__repr__ and kind.__str__ is object.__str__ else str(value)


def _present(curve: Curve) -> float | None:
    """Where a value is now: the last one, smoothed if it is noisy; None if it is not finite."""
    if curve.last is None or not math.isfinite(curve.last):
        return None
    return curve.smoothed()[-1][1] if len(curve) > _NOISY else curve.last


def _number(value: float | None) -> str:
    return "not finite" if value is None or value - value != 0.0 else number_text(value)


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _duration(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    if hours:
        return f"{hours} h {rest // 60} min"
    return f"{rest // 60} min {rest % 60} s" if rest >= 60 else f"{seconds:.1f} s"
