"""`import pullback` is light: NumPy is enough, and nothing heavier is loaded."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pullback as pb

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "jax", "jaxlib", "cupy", "scipy", "sklearn", "llvmlite", "numba", "ml_dtypes", "array_api_strict")


def run(program: str) -> str:
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_no_heavy_module_is_loaded():
    assert run(f"import sys, pullback; print([m for m in {HEAVY!r} if m in sys.modules])") == "[]"


def test_numpy_alone_is_enough_to_differentiate():
    program = f"""
import sys
for name in {HEAVY!r}:
    sys.modules[name] = None  # importing it raises
import pullback as pb
x = pb.tensor([1.0, 2.0], requires_grad=True)
pb.sum(pb.exp(x) * x).backward()
print(pb.grad(lambda x: pb.sum(pb.tanh(x) ** 2))(x.detach()).shape, x.grad.shape)
"""
    assert run(program) == "(2,) (2,)"


def test_import_warns_about_nothing():
    assert run("import warnings; warnings.simplefilter('error'); import pullback") == ""


def test_version_is_the_one_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert pb.__version__ == project["version"]


def test_only_numpy_is_required():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [requirement.partition(">")[0] for requirement in project["dependencies"]] == ["numpy"]


def test_package_says_that_it_is_typed():
    assert (Path(pb.__file__).parent / "py.typed").exists()


def test_families_for_networks_are_loaded_when_used():
    program = """
import sys, pullback as pb
family = "pullback.functions.convolution"
before = family in sys.modules
pb.conv1d
print(before, family in sys.modules, "max_pool2d" in dir(pb), hasattr(pb, "cross_entropy"), hasattr(pb, "no_such_name"))
"""
    assert run(program) == "False True True True False"
