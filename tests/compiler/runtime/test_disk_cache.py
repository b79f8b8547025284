"""Object code on disk: hits and misses, files that are not to be trusted, disks that do not work."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings

import numpy as np
import pytest

from pullback.targets.llvm import emission
from pullback.targets.llvm.runtime import disk_cache, dispatch as runtime, jit, natives
from pullback.targets.llvm.runtime.executable import build

from .kernels import Affine, Builder, run

KEY = "0123abcd"
posix = pytest.mark.skipif(os.name != "posix", reason="there are no permissions of that kind")


def file_of(cache):
    (file,) = cache.iterdir()
    return file


@pytest.fixture
def fresh(request, monkeypatch):
    """An empty cache in a process that knows no function yet; counts what is written for LLVM and what is compiled."""
    runtime.library()  # not to be counted, nor to be found in the folder
    request.getfixturevalue("cache")
    monkeypatch.setattr(natives, "_known", type(natives._known)())
    counts = {"emitted": 0, "compiled": 0}
    emit, compile_object = emission.emit, jit.compile_object

    def counting_emit(*args):
        counts["emitted"] += 1
        return emit(*args)

    def counting_compile(text):
        counts["compiled"] += 1
        return compile_object(text)

    monkeypatch.setattr(emission, "emit", counting_emit)
    monkeypatch.setattr(jit, "compile_object", counting_compile)
    return counts


def forget():
    natives._known.clear()


def result(factor: float = 2.0, count: int = 1) -> list[float]:
    builder = Builder()
    x, out = builder.input(1), builder.output(count)
    for i in range(count):
        builder.call(Affine(1, factor, float(i)), [x], [(out, 8 * i)])
    values = np.zeros(count)
    run(build(builder.schedule), [np.array([10.0])], [values])
    return list(values)


# -- what is stored --------------------------------------------------------------------------------


def test_what_was_written_is_read(cache):
    assert disk_cache.read(KEY) is None
    disk_cache.write(KEY, b"code")
    assert disk_cache.read(KEY) == b"code"
    assert disk_cache.read("ffff") is None
    disk_cache.write(KEY, b"")
    assert disk_cache.read(KEY) == b""


@posix
def test_the_folder_and_its_files_are_for_the_user_alone(cache):
    old = os.umask(0)
    try:
        disk_cache.write(KEY, b"code")
    finally:
        os.umask(old)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(file_of(cache).stat().st_mode) == 0o600


def test_where_the_folder_is(monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "own"))
    assert disk_cache.folder() == tmp_path / "own" / "native"
    monkeypatch.delenv("PULLBACK_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert disk_cache.folder() == tmp_path / "xdg" / "pullback" / "native"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert disk_cache.folder() == tmp_path / "home" / ".cache" / "pullback" / "native"


@pytest.mark.parametrize("position", ["first", "digest", "last", "cut", "empty", "longer"])
def test_a_damaged_file_is_ignored_and_written_anew(cache, position):
    disk_cache.write(KEY, b"code" * 10)
    file = file_of(cache)
    content = bytearray(file.read_bytes())
    if position == "cut":
        content = content[:-1]
    elif position == "empty":
        content = bytearray()
    elif position == "longer":
        content += b"x"
    else:
        content[{"first": 0, "digest": len(disk_cache._MAGIC) + 3, "last": -1}[position]] ^= 1
    file.write_bytes(content)
    assert disk_cache.read(KEY) is None
    disk_cache.write(KEY, b"code" * 10)
    assert disk_cache.read(KEY) == b"code" * 10


def test_a_file_under_another_name_is_not_taken(cache):
    disk_cache.write(KEY, b"code")
    file_of(cache).rename(cache / ("9999" + disk_cache._SUFFIX))
    assert disk_cache.read("9999") is None


@posix
def test_a_file_others_may_touch_is_ignored_and_written_anew(cache):
    disk_cache.write(KEY, b"code")
    file_of(cache).chmod(0o620)
    assert disk_cache.read(KEY) is None
    disk_cache.write(KEY, b"code")
    assert disk_cache.read(KEY) == b"code"


@posix
def test_a_link_is_not_followed(cache, tmp_path):
    disk_cache.write(KEY, b"code")
    file = file_of(cache)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(RuntimeWarning, match="not kept on disk"):
        assert disk_cache.read(KEY) is None
    disk_cache.write(KEY, b"new")
    assert disk_cache.read(KEY) == b"new"
    assert not file.is_symlink()


@posix
def test_someone_elses_file_is_ignored(cache, monkeypatch):
    disk_cache.write(KEY, b"code")
    own = os.getuid()
    folder = os.lstat(cache)
    monkeypatch.setattr(disk_cache, "_private", lambda place: True)
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert folder.st_uid == own
    assert disk_cache.read(KEY) is None


@posix
@pytest.mark.parametrize("mode", [0o750, 0o707, 0o720])
def test_a_folder_others_may_enter_is_not_used(cache, mode):
    disk_cache.write(KEY, b"code")
    cache.chmod(mode)
    with pytest.warns(RuntimeWarning, match="chmod 700"):
        assert disk_cache.read(KEY) is None
    disk_cache.write("ffff", b"code")  # one warning is enough
    assert len(list(cache.iterdir())) == 1


def test_trouble_with_the_disk_is_one_warning(cache):
    cache.parent.parent.mkdir(exist_ok=True)
    cache.parent.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match="not kept on disk"):
        disk_cache.write(KEY, b"code")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        disk_cache.write(KEY, b"code")
        assert disk_cache.read(KEY) is None


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    disk_cache.write(KEY, b"code")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        disk_cache.write("ffff", b"code")
    assert [file.name for file in cache.iterdir()] == [KEY + disk_cache._SUFFIX]


def test_files_not_used_for_longest_are_removed_beyond_the_limit(cache, monkeypatch):
    monkeypatch.setattr(disk_cache, "LIMIT", 10_000)
    for i in range(8):
        disk_cache.write(f"{i}", b"x" * 1000)
        os.utime(cache / f"{i}{disk_cache._SUFFIX}", (i, i))
    assert disk_cache.read("0") is not None  # a use
    for i in range(8, 10):
        disk_cache.write(f"{i}", b"x" * 1000)
    kept = {file.stem for file in cache.iterdir()}
    assert kept == {"0", "4", "5", "6", "7", "8", "9"} or kept == {"0", "5", "6", "7", "8", "9"}
    assert sum(file.stat().st_size for file in cache.iterdir()) <= 10_000


# -- functions -------------------------------------------------------------------------------------


def test_a_second_process_writes_and_compiles_nothing(fresh, cache):
    assert result(count=20) == [20.0 + i for i in range(20)]
    assert fresh == {"emitted": 20, "compiled": 3}
    assert len(list(cache.iterdir())) == 3
    forget()
    assert result(count=20) == [20.0 + i for i in range(20)]
    assert fresh == {"emitted": 20, "compiled": 3}
    assert result(3.0) == [30.0]
    assert fresh == {"emitted": 21, "compiled": 4}


def test_a_kernel_is_compiled_once_in_a_process(fresh):
    builder = Builder()
    x, out = builder.input(1), builder.output(1)
    for _ in range(5):
        builder.call(Affine(1, 2.0, 0.0), [x], [out])
    first = build(builder.schedule)
    second = build(builder.schedule)
    assert fresh == {"emitted": 1, "compiled": 1}
    assert len(first._spans[0].calls) == 5
    assert first._spans[0].calls[0].native is second._spans[0].calls[4].native


def test_what_the_emitter_said_is_kept_too(fresh):
    kernel = Affine(100, 2.0, 0.0, 12345.678, 10)
    (first,) = natives.functions_for([kernel])
    said = first.emitted
    del first
    forget()
    (second,) = natives.functions_for([kernel])
    assert second.emitted == said
    assert fresh["emitted"] == 1


def test_a_damaged_file_is_compiled_again(fresh, cache):
    assert result() == [20.0]
    file = file_of(cache)
    content = bytearray(file.read_bytes())
    content[-100] ^= 255
    file.write_bytes(content)
    forget()
    assert result() == [20.0]
    assert fresh["compiled"] == 2
    forget()
    assert result() == [20.0]
    assert fresh["compiled"] == 2


@pytest.mark.parametrize("what", ["machine", "sources"])
def test_another_machine_or_another_version_compiles_its_own(fresh, cache, monkeypatch, what):
    assert result() == [20.0]
    forget()
    other = natives.environment() + what
    monkeypatch.setattr(natives, "environment", lambda: other)
    assert result() == [20.0]
    assert fresh["compiled"] == 2
    assert len(list(cache.iterdir())) == 2


def test_a_disk_that_does_not_work_does_not_stop_a_program(fresh, cache):
    cache.parent.write_text("")
    with pytest.warns(RuntimeWarning, match="not kept on disk"):
        assert result() == [20.0]


def test_code_with_an_address_in_it_is_not_kept(fresh, cache, monkeypatch):
    from llvmlite import ir

    from pullback.targets.llvm.code import I64

    def emit_with_address(module, name, kernel):
        said = emission.emitter_of(Affine)(module, name, kernel)
        function = module.globals[name]
        block = function.blocks[0]
        builder = ir.IRBuilder(block)
        builder.position_at_start(block)
        builder.load(builder.inttoptr(I64(id(cache)), I64.as_pointer()))
        return said

    monkeypatch.setattr(emission, "emit", emit_with_address)
    natives.functions_for([Affine(1, 7.5, 0.0)])
    assert not cache.exists() or not list(cache.iterdir())


EXTERNAL = """
import ctypes, sys
from dataclasses import dataclass
from llvmlite import ir
from pullback.targets.llvm import emission
from pullback.targets.llvm.runtime import natives
from pullback.targets.llvm.runtime import jit
from pullback.targets.llvm.code import Code, Emitted, VOID

calls = []
callback = ctypes.CFUNCTYPE(None)(lambda: calls.append(1))
emission.provide("test_callback", lambda: ctypes.cast(callback, ctypes.c_void_p).value)

@dataclass(frozen=True)
class Calling:
    n: int

def emit(module, name, kernel):
    print("emitted")
    code = Code(module, name)
    function = emission.external(module, "test_callback", ir.FunctionType(VOID, []))
    code.b.call(function, [])
    code.end_function()
    return Emitted(name, 1, 1.0)

(native,) = natives.functions_for([Calling(3)])
kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p])
kind(native.address)(None, 0, 1, 0, None)
print(calls)
"""


def test_functions_from_elsewhere_are_found_by_name_in_another_process(cache):
    outputs = [
        subprocess.run([sys.executable, "-c", EXTERNAL], capture_output=True, text=True, timeout=60) for _ in range(2)
    ]
    assert [done.stdout for done in outputs] == ["emitted\n[1]\n", "[1]\n"], outputs
