"""Where chat templates run: Jinja's sandbox, with the names that templates of Hugging Face's folders use."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Callable

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

# Around what a {% generation %} block writes. They are no characters of any text: Unicode keeps them free for this.
BEGIN, END = "\ufdd0", "\ufdd1"


def compiled(source: str, now: datetime) -> Any:
    """The template of a source; `now` is the time that `strftime_now` tells.

    >>> from datetime import datetime
    >>> from pullback.finetune.sandbox import compiled
    >>> compiled("{{ name | tojson }} {{ strftime_now('%Y') }}", datetime(2024, 5, 1)).render(name="é")
    '"é" 2024'
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlocks, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json  # Jinja's own escapes what HTML does not allow
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda format: now.strftime(format)
    return environment.from_string(source)


class _GenerationBlocks(jinja2.ext.Extension):
    """`{% generation %}` ... `{% endgeneration %}`: what stands between them is written by the model."""

    tags = frozenset({"generation"})

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_between_marks"), [], [], body).set_lineno(line)

    def _between_marks(self, caller: Callable[[], str]) -> str:
        return f"{BEGIN}{caller()}{END}"


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
