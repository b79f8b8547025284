from __future__ import annotations

import pytest

from pullback.targets.llvm.runtime import disk_cache


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_tests(tmp_path_factory):
    """Compiled code goes to a folder of the tests' own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PULLBACK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, which has not warned yet."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_cache, "_warned", False)
    return tmp_path / "cache" / "native"
