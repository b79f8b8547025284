"""`pullback finetune --example`: a tiny model, made on the spot, on the whole way."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from time import perf_counter

from .. import models, peft, train
from ..errors import ConfigurationError
from ..finetune import Tokenizer
from ..finetune.example import LENGTH, write_chats, write_model
from ..finetune.example_texts import QUESTION
from ..finetune.loading import loaded
from . import finetune_format as formats, finetuning

_OPTIONS = {"rank": 8, "lr": 4e-3, "batch": 8, "seq": LENGTH, "steps": 120, "validate_every": 25, "clip_norm": 1.0}


def run(options: Namespace) -> int:
    """Make a model and chats, fine-tune, and let the model answer before and after."""
    if not options.out:
        raise ConfigurationError("name the folder that the example is to be written to: --out DIR.")
    given = formats.given(options)
    if options.config or "model" in given or "data" in given:
        raise ConfigurationError(
            "--example makes a model and texts of its own: leave CONFIG.toml, --model and --data out."
        )
    folder = Path(options.out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"{folder} is there and not an empty folder: name another --out.")
    began = perf_counter()
    model, tuned, merged = folder / "model", folder / "run", folder / "merged"
    print("a tiny Qwen3 learns to read, all of its weights:", flush=True)
    write_model(model, [] if options.quiet else [train.Progress()])
    chats, held_out = write_chats(folder)
    print(f"\nasked before: {QUESTION}\n    {_answer(model, None)}")
    print(f"\nfine-tuning on {chats}, where the question is not asked:", flush=True)
    values = {**_OPTIONS, **given, "model": str(model.resolve()), "data": str(chats.resolve())}
    values["validation"] = str(held_out.resolve())
    named = {name: (f"--{name.replace('_', '-')}", value) for name, value in values.items()}
    configuration = formats.FORMAT.parsed("", "pullback finetune --example", Path.cwd(), options=named)
    code = finetuning.fine_tune(configuration, tuned, is_quiet=options.quiet)
    if code:
        return code
    print(f"\nasked after: {QUESTION}\n    {_answer(model, tuned)}")
    finished = loaded(str(model), adapter=str(tuned))
    models.save(peft.remove(peft.merge(finished)), merged, like=model)
    print(f"\nmerged:  {merged.resolve()}\n{perf_counter() - began:.0f} s")
    return 0


def _answer(model: Path, adapter: Path | None) -> str:
    """What the model answers to the question."""
    answering = loaded(str(model), adapter=None if adapter is None else str(adapter))
    tokenizer = Tokenizer(model)
    tokens = tokenizer.encode_chat([{"role": "user", "content": QUESTION}], add_generation_prompt=True)
    found = answering.generate(tokens, max_new_tokens=24, stop=tokenizer.stop_ids)
    return tokenizer.decode(found).strip()
