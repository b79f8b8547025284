"""What a notebook shows of a trainer: how far the run is, its figures and its loss, and what it is made of."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from ..markup import card, escaped, folded, heading, table
from ..nn.notebook import tree
from .charts import Line, line_chart, number_text, standalone
from .rates import rate_texts
from .report import settings_of

if TYPE_CHECKING:
    from .trainer import Trainer

_TONES = {"finished": "good", "stopped": "warning", "failed": "bad"}
_UNSHOWN = ("step", "epoch", "seconds")


def html(trainer: Trainer) -> str:
    """A card about a trainer."""
    model = trainer.model
    words, tone = _state(trainer)
    total = f" / {number_text(trainer.total_steps)}" if trainer.total_steps else ""
    notes = [type(model).__name__, f"step {trainer.step:,}{total}", f"epoch {trainer.epoch:,}"]
    parts = [heading("Trainer", notes, words, tone)]
    figures = _figures(trainer)
    if figures:
        parts.append(table([name for name, _ in figures], [[value for _, value in figures]]))
    parts.append(_picture(trainer))
    if trainer.why_not_compiled:
        parts.append(f'<div style="opacity:.7">steps are not compiled: {escaped(trainer.why_not_compiled)}</div>')
    if trainer.folder is not None:
        parts.append(f'<div style="opacity:.7">folder <code>{escaped(trainer.folder)}</code></div>')
    parts.append(folded("settings", table(["", ""], list(settings_of(trainer, trainer.optimizer)))))
    parts.append(folded(f"model: {model.num_parameters():,} parameters", tree(model)))
    return card(*parts)


def _state(trainer: Trainer) -> tuple[str, str]:
    if trainer.ending is not None:
        return str(trainer.ending), _TONES[trainer.ending.status]
    if trainer.is_running:
        return "running", "plain"
    return ("not trained yet" if trainer.step == 0 else "not running"), "plain"


def _figures(trainer: Trainer) -> list[tuple[str, str]]:
    """The last values: of the steps, of the validations, and how fast it was."""
    history = trainer.history
    step, validation, epoch = history.steps.last, history.validations.last, history.epochs.last
    latest: dict[str, Any] = {**({"loss": step["loss"]} if step else {}), **validation, **epoch}
    values = [
        (name, number_text(value))
        for name, value in latest.items()
        if name not in _UNSHOWN and not name.endswith("_per_second") and isinstance(value, (int, float))
    ]
    return (
        [*values, *[(unit, value) for unit, value in rate_texts(step)], ("time", f"{trainer.seconds:.1f} s")]
        if step
        else []
    )


def _picture(trainer: Trainer) -> str:
    """The loss as a picture of its own, whose style does not touch the page around it."""
    lines = []
    for name, records, colour in (("train", trainer.history.steps, 0), ("validation", trainer.history.validations, 1)):
        key = "loss" if name == "train" else "validation_loss"
        points = [(record["step"], record[key]) for record in records if key in record]
        if points:
            lines.append(Line(name, points, colour, dotted=name == "validation"))
    if not lines:
        return ""
    svg = standalone(line_chart(lines, title="Loss", width=560, height=220, logarithmic=True))
    data = b64encode(svg.encode()).decode()
    return (
        f'<img alt="the loss by step" width="560" style="display:block;max-width:100%;height:auto;margin:6px 0" '
        f'src="data:image/svg+xml;base64,{data}">'
    )
