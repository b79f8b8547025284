"""What the page on the command line says is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pullback.cli import configuration as configurations

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def test_the_configuration_on_the_page_is_sound(tmp_path):
    (text,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert configurations.FORMAT.parsed(text, "run.toml", tmp_path)["name"] == "prices"


@pytest.mark.parametrize("name", configurations.SECTIONS)
def test_the_page_names_every_key(name):
    (row,) = re.findall(rf"^\| `\[{name}\]` \|(.*)\|$", PAGE, re.MULTILINE)
    section = configurations.SECTIONS[name]
    keys = {*section.keys, *section.kinds, *(key for keys in section.kinds.values() for key in keys)}
    assert keys - {"default"} - set(re.findall(r"`(\w+)`", row)) == set()
