"""Training: the loop, its checkpoints, logs and report."""

from . import metrics
from .callbacks import Callback, Record
from .charts import Line, line_chart, standalone
from .checkpoints import read_checkpoint, write_checkpoint
from .compiling import NotCompiledWarning
from .early_stopping import EarlyStopping
from .history import History, Records
from .jsonl import JsonLines, read_log
from .pictures import image_grid, png
from .progress import Progress
from .report import Report
from .tensorboard import TensorBoard
from .trainer import Trainer

__all__ = [
    "Callback", "EarlyStopping", "History", "JsonLines", "Line", "NotCompiledWarning", "Progress", "Record",
    "Records", "Report", "TensorBoard", "Trainer", "image_grid", "line_chart", "metrics", "png", "read_checkpoint",
    "read_log", "standalone", "write_checkpoint",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
