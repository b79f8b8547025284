"""`pullback finetune`: from options to an adapter."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from .. import train
from ..backends import for_device
from ..errors import ConfigurationError
from ..finetune.plan import memory_plan
from ..finetune.run import ADAPTER_FILES, Run
from ..finetune.settings import Settings
from ..finetune.texts import Texts
from ..models.folder import has_weights
from ..train.run_folder import REPORT
from . import finetune_format as formats
from .callbacks import Beginning, Notice, told_by_command
from .folders import CONFIGURATION, RESULTS, Owner
from .reading import Configuration, written
from .tables import aligned, size

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
        what = "to go on with" if options.resume else "that the run is to be written to"
        raise ConfigurationError(f"name the folder {what}: --out DIR.")
    folder = Path(options.out)
    is_begun = False
    if options.resume:
        configuration, is_begun = _resumed(options, folder)
    else:
        configuration = formats.configuration_of(options)
        OWNER.check_new(folder, options.overwrite)
    return fine_tune(
        configuration,
        folder,
        resume=options.resume,
        is_begun=is_begun,
        overwrite=options.overwrite,
        is_quiet=options.quiet,
    )


def fine_tune(
    configuration: Configuration,
    folder: Path,
    *,
    resume: bool = False,
    is_begun: bool = False,
    overwrite: bool = False,
    is_quiet: bool = False,
) -> int:
    """Make a run in a folder, or go on with it; one that `is_begun` has written what it is of."""
    settings = formats.settings_of(configuration)
    for_device(settings.device)  # one that is not there is told before texts are read
    texts = Texts(settings)
    if is_begun:
        OWNER.check_data(folder, texts.fingerprint)
    if not is_quiet:
        _show_texts(texts)
    made = Run(settings, texts, folder)
    trainer = made.trainer
    trainer.callbacks.insert(0, Beginning(OWNER, None if is_begun else written(configuration), texts.fingerprint))
    if not is_quiet:
        trainer.callbacks += [train.Progress(), Notice()]
    with told_by_command():
        made.fit(resume=resume, overwrite=overwrite)
    if trainer.stop_signal is not None:
        print(f"stopped at step {trainer.step}; go on with: pullback finetune --resume --out {folder}")
        return 128 + trainer.stop_signal
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
    how = "" if settings.quant == "none" else f" --quant {settings.quant}"
    print(f"try it:  pullback generate --model {settings.model} --adapter {folder}{how} ...")
    return 0


def _resumed(options: Namespace, folder: Path) -> tuple[Configuration, bool]:
    """The configuration of the run in the folder, and whether it was written there.

    What is given beside it must say the same; a run that was cut off before it wrote its own can begin with that.
    """
    given = formats.given(options)
    whole = None
    if options.config is not None or {"model", "data"} <= given.keys():
        whole = formats.configuration_of(options)
    path = OWNER.configuration_of(folder, needed=whole is None)
    if path is None:
        assert whole is not None
        return whole, False
    saved = formats.FORMAT.read(path)
    if options.config is not None:
        assert whole is not None
        given = {name: value for name, value in whole.items() if name != "date"} | given
    changes = [f"{name} was {saved[name]!r} and is {value!r}" for name, value in given.items() if saved[name] != value]
    if changes:
        raise ConfigurationError(
            f"{folder} holds another run: {'; '.join(changes)}. A run is resumed as it began: leave these as they "
            "were, or start a new run without --resume."
        )
    return saved, True


def _show_texts(texts: Texts) -> None:
    print(aligned(list(texts.described())))


def _show_plan(settings: Settings, texts: Texts) -> int:
    """Show what a run would be made of, without loading weights."""
    _show_texts(texts)
    if not has_weights(settings.model):
        print(f"\n{settings.model} has no weights yet: the plan is for what its config.json says.")
    print()
    rows = [(name, size(count)) for name, count in memory_plan(settings, texts.config)]
    print(aligned([("memory", "at most"), *rows]))
    return 0
