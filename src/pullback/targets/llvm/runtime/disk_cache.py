"""Object code on disk, so that a program compiles once on a machine and not once in every process.

What is loaded from here is run, so the folder must be the user's own and closed to everybody else, and so must each
file; a file also has to hold what was written under its name, to the last bit. Whatever does not is ignored, and
written anew. Trouble with the disk is never an error: the code is compiled, and there is one warning.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

#: Bytes that all files together may have; beyond, those that were not used for longest are removed.
LIMIT = 256 * 1024 * 1024

_MAGIC = b"pullback object code 1\n"
_DIGEST = hashlib.sha256().digest_size
_SUFFIX = ".native"
_warned = False
_since_looking: int | None = None  # bytes written since all files were looked at


def folder() -> Path:
    """Where the files are: in $PULLBACK_CACHE_DIR, else in the user's folder for caches."""
    own = os.environ.get("PULLBACK_CACHE_DIR")
    if own:
        return Path(own) / "native"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pullback" / "native"


def read(key: str) -> bytes | None:
    """What was written under a key (a name made of hexadecimal digits), or None."""
    try:
        place = folder()
        if not os.path.lexists(place) or not _private(place):
            return None
        content = _content(place / (key + _SUFFIX))
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        _warn(str(error))
        return None
    head = len(_MAGIC) + _DIGEST
    if content is None or content[: len(_MAGIC)] != _MAGIC:
        return None
    payload = content[head:]
    return payload if content[len(_MAGIC) : head] == _digest(key, payload) else None


def write(key: str, payload: bytes) -> None:
    """Keep `payload` under a key, if that can be done."""
    try:
        place = folder()
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
        if not _private(place):
            return
        _replace(place / (key + _SUFFIX), _MAGIC + _digest(key, payload) + payload)
        _shrink(place, len(payload))
    except (OSError, RuntimeError) as error:
        _warn(str(error))


def _digest(key: str, payload: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + payload).digest()


def _private(place: Path) -> bool:
    """Whether a folder is ours alone; says so if not."""
    status = os.lstat(place)
    if stat.S_ISDIR(status.st_mode) and _ours(status):
        return True
    _warn(f"{place} is not a folder that belongs to this user with access for nobody else (chmod 700)")
    return False


def _ours(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):  # Windows keeps a user's folders from others by lists this does not show
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o077


def _content(path: Path) -> bytes | None:
    """A file's bytes, if it is a plain file of ours; reading it counts as use."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):  # a pipe in a file's place must not keep us waiting
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _ours(status):
            return None
        content = file.read()
    with suppress(OSError):
        os.utime(path)
    return content


def _replace(path: Path, content: bytes) -> None:
    """A whole file or none. It need not reach the disk before it has its name: a torn one is known by its digest."""
    descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)  # for its owner alone
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _shrink(place: Path, written: int) -> None:
    """Remove the files that were not used for longest until a quarter of the limit is free, once it is passed.

    Looking at all files takes a while, so that is done now and then, beginning with the first write.
    """
    global _since_looking
    if _since_looking is not None and _since_looking + written <= LIMIT // 64:
        _since_looking += written
        return
    _since_looking = 0
    files = []
    with os.scandir(place) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another process does the same
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    files.append((status.st_mtime_ns, status.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    if total <= LIMIT:
        return
    for _, size, path in sorted(files):
        with suppress(FileNotFoundError):
            os.unlink(path)
        total -= size
        if total <= LIMIT * 3 // 4:
            break


def _warn(why: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"compiled code is not kept on disk: {why}", RuntimeWarning, stacklevel=2)
