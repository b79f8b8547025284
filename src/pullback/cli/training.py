"""`pullback train`: from a configuration to a finished run."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

from .. import backends, optim, train
from ..data import Batches
from ..errors import ConfigurationError
from ..functions import losses
from ..optim import schedules
from . import configuration as configurations, datasets, folders, forecasts, models, results
from .callbacks import Beginning, Notice, told_by_command
from .reading import Configuration, written


def run(options: Namespace) -> int:
    """Train as the command line says: 0 when the run is finished, 128 and its number when a signal ended it."""
    if options.print_config:
        print(_printed(options), end="")
        return 0
    folder: Path | None
    if options.resume:
        configuration, folder, is_begun = _resumed(options)
    else:
        configuration, folder = _new(options)
        is_begun = False
    data = datasets.load(configuration["data"], configuration["seed"])
    if folder is not None:
        if is_begun:
            folders.TRAIN.check_data(folder, data.fingerprint())
        return _train(options, configuration, folder, data, is_begun)
    with folders.next_free(configuration["name"], Path()) as chosen:
        return _train(options, configuration, chosen, data, is_begun)


def _train(options: Namespace, configuration: Configuration, folder: Path, data: Any, is_begun: bool) -> int:
    """Train in a folder, where the run `is_begun` already or not."""
    trainer, batches, test = _made(configuration, folder, data)
    text = None if is_begun else written(configuration)
    trainer.callbacks.insert(0, Beginning(folders.TRAIN, text, data.fingerprint()))
    if not options.quiet:
        trainer.callbacks += [train.Progress(), Notice()]
    plan = configuration["train"]
    with told_by_command():
        trainer.fit(
            batches,
            epochs=plan["epochs"],
            steps=plan["steps"],
            validation=test,
            validate_every=plan["validate_every"],
            resume=options.resume,
            overwrite=options.overwrite,
        )
    if trainer.stop_signal is not None:
        print(f"stopped at step {trainer.step}; go on with: pullback train --resume --folder {folder}")
        return 128 + trainer.stop_signal
    for line in results.written(trainer, test, data, configuration, folder):
        print(line)
    return 0


# -- what to train, and where ---------------------------------------------------------------------


def _printed(options: Namespace) -> str:
    if options.example and not options.config and not options.set:
        return configurations.example_text(options.example)  # with its comments
    return written(_configuration(options))


def _configuration(options: Namespace) -> Configuration:
    if options.config and options.example:
        raise ConfigurationError(f"{options.config} and --example {options.example} are two things to train: name one.")
    if not (options.config or options.example):
        raise ConfigurationError("name what to train: a CONFIG.toml, or an example such as `--example digits`.")
    if options.example:
        text = configurations.example_text(options.example)
        return configurations.FORMAT.parsed(text, f"{options.example}.toml", Path.cwd(), options.set)
    return configurations.FORMAT.read(Path(options.config), options.set)


def _new(options: Namespace) -> tuple[Configuration, Path | None]:
    """What to train and the folder that the user names for it."""
    configuration = _configuration(options)
    if options.folder is None:
        return configuration, None
    folder = _named_folder(options)
    folders.TRAIN.check_new(folder, options.overwrite)
    return configuration, folder


def _named_folder(options: Namespace) -> Path:
    if not options.folder:
        raise ConfigurationError("--folder is empty: name a folder, or leave it out.")
    return Path(options.folder)


def _resumed(options: Namespace) -> tuple[Configuration, Path, bool]:
    """The run in the folder, which must be the one that is described, if one is; and whether it wrote what it is of."""
    if options.config or options.example:
        given = _configuration(options)
        folder = _named_folder(options) if options.folder is not None else folders.latest(given["name"], Path())
        path = folders.TRAIN.configuration_of(folder, needed=False)
        if path is None:
            return given, folder, False
        saved = configurations.FORMAT.read(path)
        changes = list(_changes(saved, given))
        if changes:
            raise ConfigurationError(
                f"{folder} holds another run: {'; '.join(changes)}. A run is resumed as it began: leave these as they "
                "were, or start a new run without --resume."
            )
        return saved, folder, True
    if options.folder is None:
        raise ConfigurationError("name the run to resume: its --folder, or the CONFIG.toml or --example that it is of.")
    if options.set:
        raise ConfigurationError("a run is resumed as it began: --set is for new runs.")
    folder = _named_folder(options)
    path = folders.TRAIN.configuration_of(folder, needed=True)
    assert path is not None
    return configurations.FORMAT.read(path), folder, True


def _changes(saved: Mapping[str, Any], given: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in {**saved, **given}:
        was, now = saved.get(key), given.get(key)
        if isinstance(was, dict) and isinstance(now, dict):
            yield from _changes(was, now, f"{key}.")
        elif was != now:
            yield f"{prefix}{key} was {was!r} and is {now!r}"


# -- the parts of a run ---------------------------------------------------------------------------


def _made(configuration: Configuration, folder: Path, data: Any) -> tuple[train.Trainer, Batches, Batches]:
    """The trainer, and the batches to train and to test with."""
    plan, seed = configuration["train"], configuration["seed"]
    model = models.build(configuration["model"], data.input_shape, data.outputs, seed)
    model.to_device(backends.for_device(configuration["device"])[1])
    size = plan["batch_size"]
    if size > len(data.train):
        raise ConfigurationError(f"train.batch_size: expected at most {len(data.train)}, the number of samples.")
    batches = Batches(data.train, size, shuffle=True, seed=seed, drop_last=True)
    total = plan["steps"] or plan["epochs"] * -(-len(batches) // plan["accumulate"])
    options = dict(configuration["optimizer"])
    charts = forecasts.charts_of(data) if configuration["data"]["kind"] == "signal" else None
    trainer = train.Trainer(
        model,
        _loss(configuration["loss"]),
        getattr(optim, _OPTIMIZERS[options.pop("kind")])(model.named_parameters(), **options),
        schedule=_schedule(configuration["schedule"], total),
        metrics=plan["metrics"],
        callbacks=[train.JsonLines(), train.Report(title=f"Training of {configuration['name']}", charts=charts)],
        clip_norm=plan["clip_norm"],
        accumulate=plan["accumulate"],
        average=plan["average"],
        folder=folder,
        checkpoint_every=plan["checkpoint_every"],
        keep=plan["keep"],
        seed=seed,
        compile=None if plan["compile"] else False,
        progress=False,  # added unless `--quiet`
    )
    return trainer, batches, Batches(data.test, size)


_OPTIMIZERS = {
    "sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop", "adagrad": "Adagrad", "lion": "Lion",
}  # fmt: skip
_SCHEDULES = {
    "constant": "Constant", "linear": "Linear", "cosine": "Cosine", "step": "Step", "exponential": "Exponential",
    "onecycle": "OneCycle", "plateau": "Plateau",
}  # fmt: skip


def _loss(options: Mapping[str, Any]) -> Callable[[Any, Any], Any]:
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "cross_entropy": lambda x, y: losses.cross_entropy(x, y, label_smoothing=options["label_smoothing"]),
        "mse": losses.mse_loss,
        "mae": losses.l1_loss,
        "huber": lambda x, y: losses.huber_loss(x, y, delta=options["delta"]),
    }
    chosen = functions[options["kind"]]
    if chosen.__name__ == "<lambda>":
        chosen.__qualname__ = options["kind"]  # as the report calls it
    return chosen


def _schedule(options: Mapping[str, Any], total: int) -> Any:
    if options["warmup"] >= total:
        raise ConfigurationError(
            f"schedule.warmup: expected fewer than the {total} steps of the run, got {options['warmup']}."
        )
    options = dict(options)
    kind = options.pop("kind")
    if kind in ("linear", "cosine", "onecycle"):
        options["total"] = total
    return getattr(schedules, _SCHEDULES[kind])(**options)
