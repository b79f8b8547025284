"""The page of the command line: what `--help` says of each command."""

from __future__ import annotations

import argparse
import os

from pullback.cli import program

_PAGE = """# The command line

What `pullback --help` and `pullback COMMAND --help` say. [The guide](../cli.md) shows how to use it.
"""


def command_line() -> str:
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"  # argparse asks for the width
    try:
        parser = program._parser()
        parts = [_PAGE, _help("pullback", parser)]
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parts += [_help(f"pullback {name}", command) for name, command in action.choices.items()]
    finally:
        os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    return "\n\n".join(parts) + "\n"


def _help(title: str, parser: argparse.ArgumentParser) -> str:
    anchor = title.replace(" ", "-")
    return f"## `{title}` {{ #{anchor} }}\n\n```text\n{parser.format_help().rstrip()}\n```"
