"""The program `pullback`: its arguments, and what becomes of errors."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from importlib import import_module
from io import TextIOWrapper
from typing import Sequence

from ..errors import ConfigurationError, DeviceError, FileFormatError, NumericalInstabilityError
from ..finetune.settings import QUANT
from ..targets.thread_count import asked_threads

_OK, _BUG, _USER_ERROR, _INTERRUPTED = 0, 1, 2, 130

#: Where the commands are, each imported when it is run.
_MODULES = {
    "train": "training",
    "check": "check",
    "finetune": "finetuning",
    "generate": "generating",
    "merge": "merging",
    "quantize": "quantizing",
    "devices": "devices",
}
_PLACE = re.compile(r"\S+:\d+: ")
_EXAMPLES = """examples:
  pullback train --example digits                  learn handwritten digits, in seconds
  pullback train --example digits --print-config   a configuration to start from
  pullback train run.toml --set optimizer.lr=0.01  train what run.toml says, with another learning rate
  pullback train --resume --folder runs/digits-1   go on with a run that was cut off
  pullback check model:loss --shapes 3x4 5         compare the gradients of loss(x, y) in model.py
  pullback finetune --example --out try            fine-tune a tiny language model, the whole way
  pullback generate --model DIR "Tell me of "      let a language model write
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
_FINETUNE_EXAMPLES = """examples:
  pullback finetune --example --out try
  pullback finetune --model qwen3-0.6b --data chats.jsonl --out runs/chats --dry-run
  pullback finetune --model qwen3-0.6b --data chats.jsonl --out runs/chats --rank 16 --seq 1024 --steps 500
  pullback finetune run.toml --out runs/chats --lr 1e-4
  pullback finetune --resume --out runs/chats

The folder gets config.toml, checkpoints, log.jsonl, report.html, and the adapter in PEFT's format. Ctrl-C and SIGTERM
write a checkpoint first; --resume then goes on as if nothing had happened, bit for bit.
"""
_GENERATE_EXAMPLES = """examples:
  pullback generate --model qwen3-0.6b --adapter runs/chats "What is a pullback?"
  pullback generate --model qwen3-0.6b --plain --temperature 0 "Once upon a time"
"""
_MERGE_EXAMPLES = """examples:
  pullback merge --model qwen3-0.6b --adapter runs/chats --out merged
"""
_QUANTIZE_EXAMPLES = """examples:
  pullback quantize --model qwen3-0.6b --quant nf4 --out qwen3-0.6b-nf4
  pullback finetune --model qwen3-0.6b-nf4 --data chats.jsonl --out runs/chats
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
    module = import_module(f".{_MODULES[options.command]}", __package__)
    return int(module.run(options))


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
    _add_finetune(command("finetune", "fine-tune a language model with adapters", _FINETUNE, _FINETUNE_EXAMPLES))
    _add_generate(command("generate", "let a language model write", _GENERATE, _GENERATE_EXAMPLES))
    _add_merge(command("merge", "write a model with its adapter in its weights", _MERGE, _MERGE_EXAMPLES))
    _add_quantize(command("quantize", "write a model in a few bits a weight", _QUANTIZE, _QUANTIZE_EXAMPLES))
    command("devices", "list what there is to compute on", "List the array libraries and devices that are here.", "")
    return parser


_TRAIN = "Train a model as a TOML file describes it, or one of the examples that come with Pullback."
_CHECK = (
    "Import a function from the current folder, call it with random arguments, and compare its derivatives, in\n"
    "reverse and in forward mode, with central differences."
)

_FINETUNE = (
    "Fine-tune a language model of a Hugging Face folder (Qwen3, Qwen2, Llama 3) on texts or chats: few parameters\n"
    "are learned beside its weights, which stay as they are. A CONFIG.toml has the names of the options as its keys."
)
_GENERATE = "Let a language model go on with a text, or answer it in the form of its chats, and show it as it comes."
_QUANTIZE = (
    "Keep the weights of a model's layers in a few bits each, write it as a folder, and show how far they are from\n"
    "what they were. Fine-tuning, generation and merging take such a folder as any other."
)
_MERGE = "Add what was learned to the weights of a model, and write it as a Hugging Face folder."


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


def _add_finetune(parser: ArgumentParser) -> None:
    from .finetune_format import add_options

    parser.add_argument("config", nargs="?", metavar="CONFIG.toml", help="a file that says what options say")
    parser.add_argument("--out", metavar="DIR", help="where the run is written")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--resume", action="store_true", help="go on with the run in the folder from its last checkpoint")
    how.add_argument("--overwrite", action="store_true", help="replace the run in the folder")
    how.add_argument("--dry-run", action="store_true", help="show texts and memory, and load nothing")
    how.add_argument("--example", action="store_true", help="make a tiny model and texts, and show the whole way")
    parser.add_argument("--print-config", action="store_true", help="print the configuration and stop")
    parser.add_argument("--quiet", action="store_true", help="show no progress, only the result")
    add_options(parser)


def _add_generate(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", help='what to answer, or to go on with; "-" reads it from the standard input')
    parser.add_argument("--model", required=True, metavar="DIR", help="the Hugging Face folder of the model")
    parser.add_argument("--adapter", metavar="DIR", help="a folder with an adapter in PEFT's format")
    parser.add_argument("--device", default="numpy", help="where to compute (default: numpy)")
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16", "float16"), help="of the weights (default: as saved)"
    )
    _add_quant(parser)
    parser.add_argument("--plain", action="store_true", help="go on with the text; no chat")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told before a chat")
    parser.add_argument("--max-tokens", type=_count, default=256, metavar="N", help="tokens at most (default: 256)")
    parser.add_argument("--temperature", type=float, default=0.7, metavar="X", help="0: the likeliest (default: 0.7)")
    parser.add_argument("--top-k", type=_count, metavar="N", help="choose among so many")
    parser.add_argument("--top-p", type=float, metavar="P", help="choose among the likeliest of this share")
    parser.add_argument("--seed", type=_seed, default=0, help="of what is drawn (default: 0)")


def _add_merge(parser: ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="the Hugging Face folder of the model")
    parser.add_argument("--adapter", required=True, metavar="DIR", help="a folder with an adapter in PEFT's format")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write; it must be new or empty")
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16", "float16"), help="of the weights (default: as saved)"
    )
    _add_quant(parser)


def _add_quantize(parser: ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="the Hugging Face folder of the model")
    parser.add_argument("--quant", required=True, choices=QUANT[1:], help="how the weights are kept")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write; it must be new or empty")
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16", "float16"), help="of the other weights (default: as saved)"
    )
    parser.add_argument("--quiet", action="store_true", help="show no table, only the result")


def _add_quant(parser: ArgumentParser) -> None:
    parser.add_argument("--quant", choices=QUANT, default="none", help="of the weights, as the adapter was made beside")


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


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("not positive")
    return value
