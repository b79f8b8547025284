"""The folder of a run: what in it is the run's own, and that nothing else is ever replaced or followed.

`run.json` is written before anything else and lists what the run has written, each name before its file; whatever is
not in the list is somebody else's. A file `checkpoints/.lock` says which process is training here. See `replacing.py`
for what becomes of a run that another one overwrites.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

from ..errors import ConfigurationError
from ..files.atomic import leftovers, remove_leftovers, sync_folder
from . import replacing
from .checkpoints import CheckpointFolder, is_checkpoint_name, is_leftover_name
from .interruption import say
from .marker import MARKER, Marker, create_marker, read_marker, write_marker

CHECKPOINTS = "checkpoints"
BEST = "best.safetensors"
LOG = "log.jsonl"
REPORT = "report.html"
LOSS_PICTURE = "loss.svg"
TENSORBOARD = "tensorboard"
_LOCK = ".lock"
_FIRST = Marker((CHECKPOINTS,))  # that of a run which has written nothing yet


class Wording(NamedTuple):
    """How a user says what is to become of a folder."""

    resume: str = "resume=True"
    overwrite: str = "overwrite=True"
    other: str = "another folder"


class RunFolder:
    """A folder that a run writes to, or wants to.

    >>> import tempfile
    >>> from pullback.train.run_folder import RunFolder
    >>> folder = RunFolder(tempfile.mkdtemp())
    >>> with folder.claimed():
    ...     path = folder.claim("log.jsonl")
    ...     _ = path.write_text("")
    >>> folder.marker().files
    ('checkpoints', 'log.jsonl')
    >>> folder.check()
    Traceback (most recent call last):
    pullback.errors.ConfigurationError: ... already holds a run that wrote no checkpoint. Pass resume=True to ...
    """

    def __init__(self, path: str | os.PathLike[str], wording: Wording | None = None) -> None:
        self.path = Path(path)
        self.wording = wording or Wording()

    def marker(self) -> Marker | None:
        """What the run here says about itself; None where there is no run."""
        return read_marker(self.path)

    def last_step(self) -> int | None:
        """That of the newest checkpoint."""
        return max(CheckpointFolder(self.path).steps(), default=None)

    # -- whether a run may begin here --------------------------------------------------------------

    def check(
        self,
        names: Iterable[str] = (),
        *,
        resume: bool = False,
        overwrite: bool = False,
        empty: bool = False,
    ) -> None:
        """Refuse a folder where a run that writes `names` would replace or follow what it did not write.

        Nothing is changed. With `empty`, a new run must not have files of others beside it either.
        """
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise ConfigurationError(f"{self.path} is a file; a run needs a folder.")
        marker = self.marker()
        if marker is not None and not (resume or overwrite):
            raise self._holds_run()
        if marker is None and (empty or overwrite):
            self._refuse_files_of_others(overwrite)
        for name in (MARKER, CHECKPOINTS, *names):
            self.place(name, marker)
        if overwrite and marker is not None:
            for name in (*marker.files, replacing.ASIDE):
                self.place(name, marker)
        self._check_checkpoints()

    def _holds_run(self) -> ConfigurationError:
        step, words = self.last_step(), self.wording
        held = "that wrote no checkpoint" if step is None else f"up to step {step}"
        separator = " " if step is None else ", "
        again = "start it again" if step is None else "go on with it"
        return ConfigurationError(
            f"{self.path} already holds a run{separator}{held}. Pass {words.resume} to {again}, {words.overwrite} to "
            f"replace it, or {words.other}."
        )

    def _refuse_files_of_others(self, overwrite: bool) -> None:
        if not self.path.is_dir():
            return
        ours = leftovers(self.path / MARKER)
        names = sorted(entry.name for entry in self.path.iterdir() if entry not in ours)
        if names:
            some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            held = "already has files in it that are not of a run"
            why = f" {self.wording.overwrite} replaces runs alone." if overwrite else ""
            raise ConfigurationError(f"{self.path} {held} ({some}).{why} Choose {self.wording.other}.")

    def _check_checkpoints(self) -> None:
        """Refuse links among the checkpoints, also ones that a run will only come to later."""
        folder = self.path / CHECKPOINTS
        if not folder.is_dir():
            return
        for entry in sorted(folder.iterdir()):
            is_ours = entry.name == _LOCK or is_checkpoint_name(entry.name)
            if is_ours and not stat.S_ISREG(entry.lstat().st_mode):
                raise self._foreign(entry, "is no plain file")

    def place(self, name: str, marker: Marker | None) -> Path:
        """The path of `name` in this folder; refused if what is there is not the run's, or a link leads there."""
        path = self.path
        parts = name.split("/")
        for number, part in enumerate(parts, 1):
            path = path / part
            try:
                mode = path.lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                break
            if stat.S_ISLNK(mode):
                raise self._foreign(path, "is a symbolic link")
            is_folder = number < len(parts) or name in (CHECKPOINTS, TENSORBOARD)
            if number == len(parts) and (marker is None or name not in (MARKER, *marker.files)):
                raise self._foreign(path, "is not of this run")
            if not (stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)):
                raise self._foreign(path, f"is no {'folder' if is_folder else 'plain file'}")
        return self.path / name

    def _foreign(self, path: Path, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"{path} {why}, so it is neither replaced nor followed. Move it away, or choose {self.wording.other}."
        )

    # -- while it runs -----------------------------------------------------------------------------

    def claim(self, name: str) -> Path:
        """The path of `name`, which is the run's from here on: to be called before it is written."""
        marker = self.marker()
        if marker is None:  # an observer that is used without a run
            if (self.path / name).is_symlink():
                raise self._foreign(self.path / name, "is a symbolic link")
            return self.path / name
        path = self.place(name, marker)
        if name not in marker.files:
            write_marker(self.path, marker.with_files(name))
        return path

    @contextmanager
    def claimed(self, names: Iterable[str] = (), *, resume: bool = False, overwrite: bool = False) -> Iterator[None]:
        """Inside, the folder is there, can be written to, and is this process's alone.

        What a killed process left half written is gone. With `overwrite`, the run that was here is set aside: it goes
        for good with `keep_new`, and comes back if the block ends without that.
        """
        names = tuple(names)
        self.settle()
        self.check(names, resume=resume, overwrite=overwrite)
        made = not self.path.is_dir()
        is_new = self._begin()
        with self._locked():
            self._recover()  # another process may have died here in the meantime
            if not is_new:
                self.check(names, resume=resume, overwrite=overwrite)
            elif self.marker() != _FIRST or self.last_step() is not None:  # or have had a run here
                raise self._holds_run()
            self._remove_leftovers()
            if overwrite and not is_new:
                replacing.set_aside(self.path)
            try:
                yield
            except BaseException as error:
                self._leave(error, is_new, made)
                raise
            self._recover()

    def keep_new(self) -> None:
        """The new run has a checkpoint: the one that it overwrites is not needed any more."""
        marker = self.marker()
        if marker is not None and marker.replaced is not None:
            replacing.drop(self.path)

    def settle(self) -> None:
        """Finish what a process that died while it overwrote a run had begun: the old run comes back, or goes."""
        marker = self.marker()
        if marker is not None and marker.is_pending:
            with self._locked():
                self._recover()

    def _recover(self) -> None:
        marker = self.marker()
        if marker is None or not marker.is_pending:
            return
        self._refuse_links((CHECKPOINTS, *marker.files, *(marker.replaced or ())))
        if marker.replaced is not None and self.last_step() is not None:
            replacing.drop(self.path)
        else:
            replacing.put_back(self.path)
            say(f"The run that was to be overwritten in {self.path} is there again: the new one wrote no checkpoint.")

    def _refuse_links(self, names: Iterable[str]) -> None:
        """Refuse links on the way to files that are to be moved or removed, from where they were or are set aside."""
        for root in (self.path, self.path / replacing.ASIDE):
            for name in names:
                for path in (root / name, *(root / name).parents):
                    if path == self.path:
                        break
                    if path.is_symlink():
                        raise self._foreign(path, "is a symbolic link")

    def _begin(self) -> bool:
        """Make the folder and its marker; whether there was none."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            is_new = self.marker() is None
            if is_new:
                create_marker(self.path, _FIRST)
                remove_leftovers(self.path / MARKER)
            folder = self.path / CHECKPOINTS
            folder.mkdir(exist_ok=True)
            descriptor, name = tempfile.mkstemp(".part", ".step-00000000.safetensors.", folder)  # can it be written?
            os.close(descriptor)
            os.unlink(name)
        except FileExistsError as error:
            if self.marker() is not None:  # one that began at the same time was faster
                raise self._holds_run() from error
            raise self._unwritable(error) from error
        except OSError as error:
            raise self._unwritable(error) from error
        for place in (self.path, self.path.parent):  # which may have been made as well
            sync_folder(place)
        return is_new

    def _unwritable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            f"a run cannot be written to {self.path}: {error.strerror or error}. Choose {self.wording.other}, or make "
            "this one writable."
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Inside, no other process is; the lock goes when its process ends, however it does."""
        path = self.path / CHECKPOINTS / _LOCK
        if path.parent.is_symlink():
            raise self._foreign(path.parent, "is a symbolic link")
        try:
            path.parent.mkdir(exist_ok=True)
            self._check_checkpoints()
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            _lock(descriptor, self.path)
            yield
        finally:
            os.close(descriptor)

    def _remove_leftovers(self) -> None:
        """Remove what killed processes left of their writing."""
        marker = self.marker()
        for name in (MARKER, *(marker.files if marker is not None else ())):
            remove_leftovers(self.path / name)
        for entry in (self.path / CHECKPOINTS).iterdir():
            if is_leftover_name(entry.name) and stat.S_ISREG(entry.lstat().st_mode):
                entry.unlink(missing_ok=True)

    def _leave(self, error: BaseException, is_new: bool, made: bool) -> None:
        """Put back the run that was overwritten, if this one has no checkpoint; the error that ended it stays."""
        try:
            self._recover()
            if is_new:
                self._leave_nothing(made)
        except OSError as failure:
            error.add_note(f"And {self.path} could not be put in order ({failure}); the next run there tries again.")

    def _leave_nothing(self, made: bool) -> None:
        """Take away the traces of a run that failed before it wrote anything."""
        marker = self.marker()
        if marker != _FIRST or self.last_step() is not None:
            return
        with suppress(OSError):  # somebody has put something in
            (self.path / CHECKPOINTS / _LOCK).unlink(missing_ok=True)
            (self.path / CHECKPOINTS).rmdir()
            (self.path / MARKER).unlink()
            if made:
                self.path.rmdir()


def _lock(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # the system has no such locks
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError(
            f"another process is training in {folder}. Wait for it to end, or use another folder."
        ) from None
    except OSError:  # the file system has none
        pass
