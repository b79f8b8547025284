"""A file is the old one or the new one, never a half; permissions, links, folders."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pullback.files import atomic
from pullback.files.atomic import atomic_write


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_the_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("existed", [True, False], ids=["old file", "no file"])
def test_an_error_in_the_block_leaves_what_was_there(tmp_path: Path, error: type[BaseException], existed: bool) -> None:
    path = tmp_path / "a.bin"
    if existed:
        path.write_bytes(b"old")
    with pytest.raises(error), atomic_write(path) as file:
        file.write(b"half of it")
        raise error
    assert names(tmp_path) == (["a.bin"] if existed else [])
    assert not existed or path.read_bytes() == b"old"


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_an_error_of_the_system_leaves_what_was_there(tmp_path: Path, call: str, monkeypatch: Any) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fail(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, call, fail)
    with pytest.raises(OSError, match="No space"), atomic_write(path) as file:
        file.write(b"new")
    monkeypatch.undo()
    assert (names(tmp_path), path.read_bytes()) == (["a.bin"], b"old")


def test_what_is_written_is_on_the_disk_before_the_old_file_goes(tmp_path: Path, monkeypatch: Any) -> None:
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(atomic.os, name, lambda *a, name=name, real=real: (calls.append(name), real(*a))[1])
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"new")
    assert calls == ["fsync", "replace", "fsync"]  # the file, the name, the folder


def test_permissions_are_those_of_any_new_file_or_of_the_replaced_one(tmp_path: Path) -> None:
    plain, ours, private = (tmp_path / name for name in ("plain", "ours", "private"))
    plain.write_bytes(b"")
    private.write_bytes(b"")
    private.chmod(0o600)
    for path in (ours, private):
        with atomic_write(path) as file:
            file.write(b"new")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (plain, ours, private)]
    assert modes == [modes[0], modes[0], 0o600]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "real.bin", tmp_path / "link.bin"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "a.bin"
    with pytest.raises(FileNotFoundError, match=r"folder that does not exist: .*a\.bin"), atomic_write(path):
        pytest.fail("the block must not run")


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def refuse(*args: Any, **named: Any) -> None:  # the superuser may write everywhere, so permissions alone do not do
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(atomic.tempfile, "mkstemp", refuse)
    with pytest.raises(PermissionError), atomic_write(path):
        pytest.fail("the block must not run")
    assert (names(tmp_path), path.read_bytes()) == (["a.bin"], b"old")


def test_a_folder_that_cannot_be_synchronised_is_no_error(tmp_path: Path, monkeypatch: Any) -> None:
    def refuse(*args: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(atomic.os, "open", refuse)
    atomic.sync_folder(tmp_path)


def test_a_directory_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "a.bin").mkdir()
    with pytest.raises(OSError), atomic_write(tmp_path / "a.bin") as file:
        file.write(b"new")
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, ".hidden", "with space", "a\nb"])
def test_any_name_a_file_can_have(tmp_path: Path, name: str) -> None:
    with atomic_write(os.fspath(tmp_path / name)) as file:
        file.write(b"new")
    assert names(tmp_path) == [name]


def test_an_error_of_the_disk_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left on device: .*a\.bin"), atomic_write(tmp_path / "a.bin"):
        raise OSError(28, "No space left on device")
