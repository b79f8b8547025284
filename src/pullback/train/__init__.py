"""Training: the loop, its checkpoints, logs and report."""

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
