import pytest


@pytest.fixture(scope="session", autouse=True)
def empty_cache(tmp_path_factory):
    """Code is compiled by these tests, not found on disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLBACK_CACHE_DIR", str(tmp_path_factory.mktemp("native")))
        yield
