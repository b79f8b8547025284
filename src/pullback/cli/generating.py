"""`pullback generate`: a language model goes on with a text, or answers it."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from ..errors import ConfigurationError
from ..finetune import Tokenizer
from ..finetune.loading import check_tokens, loaded
from ..models.config import read_config


def run(options: Namespace) -> int:
    """Write what the model writes, as it comes."""
    prompt = _read_prompt() if options.prompt == "-" else options.prompt
    tokenizer = Tokenizer(options.model)
    tokens = _tokens(tokenizer, prompt, options.system, is_plain=options.plain)
    check_tokens(max(tokens), options.model, read_config(options.model).vocab_size)
    model = loaded(options.model, options.device, options.dtype, adapter=options.adapter, quant=options.quant)
    show(model, tokenizer, tokens, options)
    return 0


def _read_prompt() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the standard input is no text: {error}.") from None


def show(model: Any, tokenizer: Tokenizer, tokens: list[int], options: Namespace) -> None:
    """Print the text that follows these tokens, as it comes."""
    stream = tokenizer.stream()
    found = model.stream(
        tokens,
        max_new_tokens=options.max_tokens,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        stop=tokenizer.stop_ids,
        seed=options.seed,
    )
    for token in found:
        print(stream.push(token), end="", flush=True)
    print(stream.finish())


def _tokens(tokenizer: Tokenizer, prompt: str, system: str | None, is_plain: bool) -> list[int]:
    if is_plain:
        if system is not None:
            raise ConfigurationError("--system is for chats: leave it out, or --plain.")
        tokens = tokenizer.encode(prompt)
    else:
        told = [] if system is None else [{"role": "system", "content": system}]
        tokens = tokenizer.encode_chat([*told, {"role": "user", "content": prompt}], add_generation_prompt=True)
    if not tokens:
        raise ConfigurationError("the prompt is empty: write a text to go on with.")
    return tokens
