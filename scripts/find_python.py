"""Print the path of another Python of some version, such as 3.12, or say in a line why there is none and fail.

It is looked for on PATH and among pyenv's versions. Each is tried: what pyenv puts on PATH stands there for versions
that are not active too, and a Python of the system may come without what makes virtual environments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

#: A build without the global lock has packages of its own, where a package has any: it is not looked for.
QUESTION = """
import ensurepip, sys, sysconfig, venv
print(sys.executable, "%d.%d" % sys.version_info[:2], sysconfig.get_config_var("Py_GIL_DISABLED") or 0, sep="\\n")
"""


def find(version: str) -> str | None:
    for candidate in candidates(version):
        try:
            answer = subprocess.run([candidate, "-c", QUESTION], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if answer.returncode == 0:
            path, *found = answer.stdout.splitlines()
            if found == [version, "0"]:
                return path
    return None


def candidates(version: str) -> Iterator[str]:
    name = f"python{version}"
    for folder in os.get_exec_path():
        if (found := shutil.which(name, path=folder)) is not None:
            yield found
    for root in pyenv_roots():
        # the newest first
        releases = sorted((root / "versions").glob(f"{version}.*"), key=lambda release: (len(release.name), release))
        yield from (str(release / "bin" / name) for release in reversed(releases))


def pyenv_roots() -> list[Path]:
    if "PYENV_ROOT" in os.environ:
        return [Path(os.environ["PYENV_ROOT"])]
    if shutil.which("pyenv") is not None:
        answer = subprocess.run(["pyenv", "root"], capture_output=True, text=True)
        if answer.returncode == 0:
            return [Path(answer.stdout.strip())]
    return [Path.home() / ".pyenv"]


def main(version: str) -> str | None:
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        print(f"Python {version}: this is the default one", file=sys.stderr)
        return None
    found = find(version)
    if found is None:
        print(f"Python {version}: not found, its tests are left out", file=sys.stderr)
    return found


if __name__ == "__main__":
    path = main(sys.argv[1])
    if path is None:
        sys.exit(1)
    print(path)
