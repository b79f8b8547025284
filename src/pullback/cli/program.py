"""The program `pullback`: its arguments, and what becomes of errors."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from io import TextIOWrapper
from typing import Sequence

from ..errors import ConfigurationError, DeviceError, FileFormatError, NumericalInstabilityError
from ..targets.thread_count import asked_threads

_OK, _BUG, _USER_ERROR, _INTERRUPTED = 0, 1, 2, 130

_PLACE = re.compile(r"\S+:\d+: ")
_EXAMPLES = """examples:
  pullback train --example digits                  learn handwritten digits, in seconds
  pullback train --example digits --print-config   a configuration to start from
  pullback train run.toml --set optimizer.lr=0.01  train what run.toml says, with another learning rate
  pullback train --resume --folder runs/digits-1   go on with a run that was cut off
  pullback check model:loss --shapes 3x4 5         compare the gradients of loss(x, y) in model.py
  pullback devices                                 what there is to compute on
"""
_TRAIN_EXAMPLES = """examples:
  pullback train --example digits --folder digits
  pullback train --example charlm --print-config > mine.toml
  pullback train mine.toml --set train.steps=2000 --set model.width=192
  pullback train mine.toml --resume

A run writes to its folder alone: config.toml, checkpoints, log.jsonl, report.html, the weights and the results.
Ctrl-C and SIGTERM write a checkpoint first; --resume then goes on as if nothing had happened, bit for bit.
"""
_CHECK_EXAMPLES = """examples:
  pullback check model:loss --shapes 3x4 5 scalar  three arguments, the last a number
  pullback check model:entropy --range 0.1 1       arguments between 0.1 and 1
  pullback check model:energy --order 2            second derivatives too

Exit code 0: all derivatives agree with central differences; 1: one is wrong; 2: nothing could be checked.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these arguments, by default those of the process, and return its exit code.

    0: done; 1: a wrong gradient was found; 2: the user must change something, and the message says what; 130: Ctrl-C;
    143: SIGTERM.

    >>> from pullback.cli import main
    >>> main(["train", "--example", "digits", "--print-config", "--set", "name=mine"])
    name = "mine"
    ...
    0
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a character that a terminal does not know is no error
    options = _parser().parse_args(arguments)
    try:
        code = _run(options)
        if sys.stdout is not None:
            sys.stdout.flush()  # here an error can still be dealt with
        return code
    except KeyboardInterrupt:
        print("pullback: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of the output has seen enough; what Python still holds goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _OK
    except (ConfigurationError, DeviceError, FileFormatError, NumericalInstabilityError, OSError, MemoryError) as error:
        print(_message(error), file=sys.stderr)
        return _USER_ERROR
    except Exception:
        import traceback

        traceback.print_exc()
        print("pullback: this is a bug in Pullback. Please report it with the lines above.", file=sys.stderr)
        return _BUG


def _message(error: BaseException) -> str:
    """An error as lines that say who complains; those that begin with a file and a line stay as editors know them."""
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    elif isinstance(error, MemoryError):
        text = f"out of memory. {error}".rstrip()
    else:
        text = str(error)
    return "\n".join(line if _PLACE.match(line) else f"pullback: error: {line}" for line in text.splitlines())


def _run(options: Namespace) -> int:
    asked_threads()  # a wrong wish is an error here, before anything is made
    if options.command == "train":
        from . import training

        return training.run(options)
    if options.command == "check":
        from . import check

        return check.run(options)
    from . import devices

    return devices.run()


def _parser() -> ArgumentParser:
    from .. import __version__

    parser = _formatted("pullback", "Automatic differentiation and training for every array library.", _EXAMPLES)
    parser.add_argument("--version", action="version", version=f"pullback {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)

    def command(name: str, summary: str, description: str, examples: str) -> ArgumentParser:
        return commands.add_parser(
            name, help=summary, description=description, epilog=examples, formatter_class=RawDescriptionHelpFormatter
        )

    _add_train(command("train", "train a model that a configuration describes", _TRAIN, _TRAIN_EXAMPLES))
    _add_check(command("check", "compare a function's gradients with central differences", _CHECK, _CHECK_EXAMPLES))
    command("devices", "list what there is to compute on", "List the array libraries and devices that are here.", "")
    return parser


_TRAIN = "Train a model as a TOML file describes it, or one of the examples that come with Pullback."
_CHECK = (
    "Import a function from the current folder, call it with random arguments, and compare its derivatives, in\n"
    "reverse and in forward mode, with central differences."
)


def _formatted(name: str, description: str, examples: str) -> ArgumentParser:
    return ArgumentParser(name, description=description, epilog=examples, formatter_class=RawDescriptionHelpFormatter)


def _add_train(parser: ArgumentParser) -> None:
    from .configuration import examples

    parser.add_argument("config", nargs="?", metavar="CONFIG.toml", help="what to train")
    parser.add_argument("--example", choices=examples(), help="train a bundled example instead")
    parser.add_argument("--folder", metavar="DIR", help="where the run is written (default: runs/NAME-1, NAME-2, ...)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--resume", action="store_true", help="go on with the run in the folder from its last checkpoint")
    how.add_argument("--overwrite", action="store_true", help="replace the run in the folder")
    parser.add_argument(
        "--set", action="append", default=[], metavar="section.key=value", help="change the configuration; repeatable"
    )
    parser.add_argument("--print-config", action="store_true", help="print the configuration and stop")
    parser.add_argument("--quiet", action="store_true", help="show no progress, only the result")


def _add_check(parser: ArgumentParser) -> None:
    parser.add_argument("function", metavar="module:function", help="what to check")
    parser.add_argument(
        "--shapes", nargs="+", metavar="SHAPE", help="a shape per argument: 3x4, 5, scalar (default: 3x4 for each)"
    )
    parser.add_argument("--dtype", choices=("float64", "complex128"), default="float64")
    parser.add_argument(
        "--range", nargs=2, type=float, metavar=("LOW", "HIGH"), help="uniform arguments (default: normal ones)"
    )
    parser.add_argument("--order", type=int, choices=(1, 2), default=1, help="2: second derivatives as well")
    parser.add_argument("--seed", type=_seed, default=0, help="of the random arguments (default: 0)")


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("negative")
    return value
