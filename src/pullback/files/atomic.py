"""Writing a file so that a reader, or a machine that loses power, sees the old one or the new one, never a half."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Iterator


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write to, which becomes `path` when the block ends, and vanishes if it raises.

    It is written beside `path`, brought to the disk, and renamed over it.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with atomic_write(folder / "notes.txt") as file:
    ...     _ = file.write(b"all or nothing")
    >>> (folder / "notes.txt").read_text()
    'all or nothing'
    """
    target = Path(path)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's are private; a file a user asked for is as any other
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(target.parent)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Bring a folder's list of names to the disk; a no-op where the system cannot open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
