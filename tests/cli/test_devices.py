"""`pullback devices`: a line for every device, and none of the ways a library can be missing ends it."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy

from ..backends.installed import is_installed


def run(program: str, *path: object) -> str:
    """`pullback devices` after some preparation, in a process of its own: what is imported stays imported."""
    start = f"import sys\nsys.path[:0] = {[str(p) for p in path]!r}\n"
    end = "\nfrom pullback.cli import main\nsys.exit(main(['devices']))"
    program = start + program + end
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def test_installed_libraries_are_listed_with_version_device_and_memory(pullback):
    result = pullback("devices")
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    assert re.fullmatch(rf"numpy +{re.escape(numpy.__version__)} +numpy +[\d.]+ GiB", lines["numpy"])
    if is_installed("torch"):
        import torch

        assert re.match(rf"torch +{re.escape(torch.__version__)} +torch:cpu +[\d.]+ GiB", lines["torch"])
    if is_installed("jax"):
        assert "jax:cpu" in lines["jax"]
    assert result.out.endswith("default device: numpy\n")


def test_missing_library_is_said():
    hidden = "lambda name: None if name in ('torch', 'jax') else found(name)"
    out = run(f"import importlib.util as util; found = util.find_spec; util.find_spec = {hidden}")
    assert re.search(r"^torch +- .*not installed \(pip install torch\)", out, re.MULTILINE)
    assert re.search(r"^jax +- .*not installed", out, re.MULTILINE)


def test_broken_library_is_reported_and_the_rest_is_listed(tmp_path):
    for name, line in {"torch": "raise OSError('libc10.so: no such file\\nmore')", "jax": "import not_there"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(line + "\n")
    out = run("", tmp_path)
    assert re.search(r"^numpy .* GiB", out, re.MULTILINE)
    assert re.search(r"^torch .*broken: OSError: libc10.so: no such file$", out, re.MULTILINE)
    assert re.search(r"^jax .*broken: ModuleNotFoundError: No module named 'not_there'$", out, re.MULTILINE)
