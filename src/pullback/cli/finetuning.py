"""`pullback finetune`: from options to an adapter."""

from __future__ import annotations

import json
import signal
import warnings
from argparse import Namespace
from pathlib import Path

import numpy as np

from .. import train
from ..errors import ConfigurationError
from ..finetune.plan import memory_plan
from ..finetune.run import ADAPTER_FILES, Run
from ..finetune.settings import Settings
from ..finetune.texts import Texts
from ..train.interruption import REASON
from ..train.run_folder import REPORT
from . import finetune_format as formats
from .callbacks import Beginning, Notice
from .folders import CONFIGURATION, RESULTS, Owner
from .reading import Configuration, written
from .tables import aligned

OWNER = Owner("finetune", "--out", (CONFIGURATION, RESULTS, *ADAPTER_FILES))


def run(options: Namespace) -> int:
    """Fine-tune as the command line says: 0 when it is finished, 128 and its number when a signal ended it."""
    if options.example:
        from . import finetune_example

        return finetune_example.run(options)
    if options.print_config:
        print(written(formats.configuration_of(options)), end="")
        return 0
    if options.dry_run:
        settings = formats.settings_of(formats.configuration_of(options))
        return _show_plan(settings, Texts(settings))
    if not options.out:
        raise ConfigurationError("name the folder that the run is to be written to: --out DIR.")
    folder = Path(options.out)
    if options.resume:
        configuration = _resumed(options, folder)
    else:
        configuration = formats.configuration_of(options)
        OWNER.check_new(folder, options.overwrite)
    return fine_tune(configuration, folder, resume=options.resume, overwrite=options.overwrite, is_quiet=options.quiet)


def fine_tune(
    configuration: Configuration, folder: Path, *, resume: bool = False, overwrite: bool = False, is_quiet: bool = False
) -> int:
    """Make a run in a folder, or go on with it."""
    settings = formats.settings_of(configuration)
    texts = Texts(settings)
    if resume:
        OWNER.check_data(folder, texts.fingerprint)
    if not is_quiet:
        _show_texts(texts)
    made = Run(settings, texts, folder)
    trainer = made.trainer
    trainer.callbacks.insert(0, Beginning(OWNER, None if resume else written(configuration), texts.fingerprint))
    if not is_quiet:
        trainer.callbacks += [train.Progress(), Notice()]
    # what becomes of an overflow is reported by the trainer
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=train.NotCompiledWarning)  # it is told by `Notice`
        history = made.fit(resume=resume, overwrite=overwrite)
    if history.stop_reason == REASON:
        print(f"stopped at step {trainer.step}; go on with: pullback finetune --resume --out {folder}")
        return 128 + (trainer.stop_signal or signal.SIGINT)
    results = made.results()
    OWNER.write(folder, RESULTS, json.dumps(results, indent=2) + "\n")
    for name in ADAPTER_FILES:
        OWNER.own_path(folder, name)
    made.save_adapter(folder)
    for name in ("loss", "validation_loss"):
        if name in results:
            print(f"{name.replace('_', ' ')} {results[name]:.4g} after {results['steps']} steps")
    print(f"adapter: {folder.resolve()}")
    print(f"report:  {(folder / REPORT).resolve()}")
    print(f"try it:  pullback generate --model {settings.model} --adapter {folder} ...")
    return 0


def _resumed(options: Namespace, folder: Path) -> Configuration:
    """The configuration of the run in the folder; what is given beside it must say the same."""
    path = OWNER.configuration_of(folder, needed=True)
    assert path is not None
    saved = formats.FORMAT.read(path)
    for name, value in formats.given(options).items():
        if saved[name] != value:
            raise ConfigurationError(
                f"{folder} holds another run: {name} was {saved[name]!r} and is {value!r}. A run is resumed as it "
                "began: leave these options out, or start a new run without --resume."
            )
    return saved


def _show_texts(texts: Texts) -> None:
    print(aligned(list(texts.described())))


def _show_plan(settings: Settings, texts: Texts) -> int:
    """Show what a run would be made of, without loading weights."""
    _show_texts(texts)
    print()
    rows = [(name, _size(count)) for name, count in memory_plan(settings, texts.config)]
    print(aligned([("memory", "at most"), *rows]))
    return 0


def _size(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 1 << 28 else f"{count / 2**20:.1f} MiB"
