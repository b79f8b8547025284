"""From LLVM's text to functions in memory: optimise it for this machine, make object code, link it, find addresses.

Object code is position independent and names what it calls from elsewhere, so it can be kept on disk and linked in
another process: see `disk_cache.py` for keeping it, and `emission.py` for the addresses behind the names.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from functools import cache
from typing import Any, Iterable, Mapping

import llvmlite
import llvmlite.binding as llvm

_numbers = itertools.count()
_lock = threading.Lock()  # linking is for one thread at a time
_of_thread = threading.local()


def machine() -> Any:
    """The target machine of this computer; each thread has its own, as LLVM requires."""
    found = getattr(_of_thread, "machine", None)
    if found is None:
        with _lock:
            found = _of_thread.machine = _new_machine()
    return found


def _new_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=2, reloc="pic", codemodel="small", jit=True
    )


@cache
def _features() -> str:
    return llvm.get_host_cpu_features().flatten()


@cache
def identity() -> str:
    """What object code depends on beside its text: the processor and the compiler."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return "\n".join(
        (llvmlite.__version__, version, llvm.get_process_triple(), llvm.get_host_cpu_name(), _features())
    )  # fmt: skip


def compile_object(text: str) -> bytes:
    """Object code of a module given as text. Several threads can do this at the same time."""
    target = machine()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    options = llvm.create_pipeline_tuning_options()
    options.speed_level = 2
    # Kernels are written in vectors already: looking for more only takes time, and makes remainders of remainders.
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    passes = llvm.create_pass_builder(target, options)
    manager = passes.getModulePassManager()
    _unlocked("LLVMPY_RunNewModulePassManager")(manager, module, passes)
    with llvm.ffi.OutputString() as error:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(target, module, 1, error)
        if not buffer:
            raise RuntimeError(f"LLVM makes no code of a module: {error}")
    try:
        return ctypes.string_at(
            llvm.ffi.lib.LLVMPY_GetBufferStart(buffer), llvm.ffi.lib.LLVMPY_GetBufferSize(buffer)
        )  # fmt: skip
    finally:
        llvm.ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _unlocked(name: str) -> Any:
    """A function of LLVM's without the lock that llvmlite has around all of them.

    The two that take long touch nothing but the module, its context and the target machine that they are given, and
    these are the calling thread's own.
    """
    function = getattr(llvm.ffi.lib, name)
    return getattr(function, "_cfn", function)


class Library:
    """Object code that is linked: its functions' addresses by name. The code lives as long as this does."""

    def __init__(self, objects: Iterable[bytes], exports: Iterable[str], symbols: Mapping[str, int]) -> None:
        builder = llvm.JITLibraryBuilder().add_current_process()
        for code in objects:
            builder.add_object_img(code)
        for name, address in symbols.items():
            builder.import_symbol(name, address)
        names = list(exports)
        for name in names:
            builder.export_symbol(name)
        linker = _linker()
        with _lock:
            self._tracker = builder.link(linker, f"pullback{next(_numbers)}")
        self.addresses: dict[str, int] = {name: self._tracker[name] for name in names}

    def keep(self) -> None:
        """Keep the code until the process ends, when other threads may still be running in it."""
        self._tracker._owned = True


@cache
def _linker() -> Any:
    linker = llvm.create_lljit_compiler(machine(), use_jit_link=True)
    linker._owned = True  # taken down by nobody: threads of ours may run in its code until the very end
    return linker
