"""Writing a file so that a reader, or a machine that loses power, sees the old one or the new one, never a half."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Iterator


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write to, which becomes `path` when the block ends, and vanishes if it raises.

    It is written beside `path`, brought to the disk, and renamed over it. A file that was there keeps its permissions,
    and a link stays a link.

    >>> import pathlib, tempfile
    >>> from pullback.files.atomic import atomic_write
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with atomic_write(folder / "notes.txt") as file:
    ...     _ = file.write(b"all or nothing")
    >>> (folder / "notes.txt").read_text()
    'all or nothing'
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "cannot write a file into a folder that does not exist", str(path))
    prefix = f".{target.name[:32]}."  # names have a largest length
    descriptor, temporary = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.chmod(temporary, permissions(target))  # mkstemp's are private
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = os.fspath(path)  # "No space left on device" does not say which
        raise
    sync_folder(target.parent)


def leftovers(path: str | os.PathLike[str]) -> list[Path]:
    """What killed processes left of their writing of `path`, or others are writing just now."""
    target = Path(os.path.realpath(path))
    pattern = re.compile(rf"\.{re.escape(target.name[:32])}\.[a-z0-9_]{{8}}\.part")  # as `mkstemp` makes names
    if not target.parent.is_dir():
        return []
    found = [entry for entry in target.parent.iterdir() if pattern.fullmatch(entry.name)]
    return [entry for entry in found if entry.is_file() and not entry.is_symlink()]


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what killed processes left of their writing of `path`; for one who knows that nobody is writing it now."""
    for leftover in leftovers(path):
        leftover.unlink(missing_ok=True)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Bring a folder's list of names to the disk; a no-op where the system does not let us."""
    if os.name != "posix":
        return
    with suppress(OSError):  # a folder we may write to but not list, or a file system that cannot do it
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def permissions(target: Path) -> int:
    """Those of the file that is replaced, or those of any new file."""
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0o666 & ~_umask()


def _umask() -> int:
    """The process's mask for new files, read without changing it where the system shows it."""
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except OSError:  # not Linux
        return 0o022
    return 0o022
