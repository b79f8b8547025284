"""Flipping the sign of any term of any rule makes the suite fail (see mutate.py)."""

from __future__ import annotations

import pytest

from . import mutate


@pytest.mark.parametrize("family", mutate.FAMILIES)
def test_no_sign_can_be_flipped_unnoticed(family: str) -> None:
    _, alive = mutate.survivors(family)
    assert not alive, "nothing fails with these changes:\n" + "\n".join(map(str, alive))


@pytest.mark.parametrize("family", mutate.FAMILIES)
def test_right_rules_survive(family: str) -> None:
    killed = [mutant.operations[0] for mutant in mutate.unchanged(family) if mutate.noticed_by_walks(mutant)]
    assert not killed, f"noticed although nothing was changed: {killed}"


def test_every_known_equivalent_still_exists() -> None:
    families = {family for family, _, _ in mutate.EQUIVALENT}
    found = {(m.family, m.before, m.after) for family in families for m in mutate.mutants(family)}
    gone = [key for key in mutate.EQUIVALENT if key not in found]
    assert not gone, f"remove from mutate_equivalent.py, no rule reads so any more: {gone}"
