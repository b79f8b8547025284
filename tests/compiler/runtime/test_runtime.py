"""The runtime's code on other systems: without threads, and for other processors."""

from __future__ import annotations

import ctypes
import platform

import llvmlite.binding as llvm
import numpy as np
import pytest

from pullback.targets.llvm.runtime import dispatch as runtime, jit
from pullback.targets.llvm.runtime.executable import build

from .kernels import chain, chain_expected


def test_without_threads_one_does_everything(monkeypatch):
    executable = build(chain(100, 3, 1e6), 4)  # in parts, as for threads
    monkeypatch.setattr(runtime, "has_threads", lambda: False)
    source = runtime.text()
    assert "pthread" not in source
    assert "sched_yield" not in source
    library = jit.Library([jit.compile_object(source)], ["pullback_run"], {})
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    x, total, out = np.arange(100.0), np.zeros(1), np.zeros(100)
    bases = np.array([x.ctypes.data, total.ctypes.data, out.ctypes.data])
    assert kind(library.addresses["pullback_run"])(executable._spans[0].program, bases.ctypes.data) == runtime.DONE
    np.testing.assert_array_equal(out, chain_expected(x, 3))
    np.testing.assert_allclose(total, out.sum(), rtol=1e-12)


def test_without_threads_a_program_has_one(monkeypatch):
    monkeypatch.setattr(runtime, "has_threads", lambda: False)
    assert build(chain(100, 3, 1e6), 4).threads == 1


@pytest.mark.parametrize(
    ("processor", "pause"), [("x86_64", "x86.sse2.pause"), ("arm64", "aarch64.hint"), ("riscv64", None)]
)
def test_the_code_is_valid_for_other_processors(monkeypatch, processor, pause):
    monkeypatch.setattr(platform, "machine", lambda: processor)
    source = runtime.text()
    llvm.parse_assembly(source, llvm.create_context()).verify()
    assert pause is None or f"call void @llvm.{pause}" in source
    assert "<" not in source  # everything is filled in


def test_a_module_that_is_wrong_is_an_error():
    with pytest.raises(RuntimeError, match="use of undefined value"):
        jit.compile_object("define void @f() {\n  call void @nowhere()\n  ret void\n}")


def test_a_function_that_is_nowhere_is_an_error():
    code = jit.compile_object(
        "declare void @nowhere_at_all()\ndefine void @f() {\n  call void @nowhere_at_all()\n  ret void\n}"
    )
    with pytest.raises(RuntimeError, match="Failed to materialize symbols"):
        jit.Library([code], ["f"], {})


def test_several_threads_compile_at_once_and_get_the_same():
    from concurrent.futures import ThreadPoolExecutor

    sources = [f"{runtime.text()}\ndefine i64 @own{i}() {{\n  ret i64 {i}\n}}" for i in range(4)] * 3
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(jit.compile_object, sources))
    assert made == [jit.compile_object(source) for source in sources]
