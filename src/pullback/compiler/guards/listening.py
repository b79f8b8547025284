"""Listening to a function while it is traced: to code of the user's that starts and the lines it reaches, and to
attributes of users' objects that are read or written. In this thread only, and all is taken away afterwards.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import random
import sys
import threading
import typing
import uuid
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Callable, Iterator
from weakref import WeakKeyDictionary

from ...autodiff.graph import is_library
from ...errors import TraceError
from .frames import function_of
from .ownership import is_users_class, is_users_code, is_users_function
from .recorder import Recorder

_HOOKED = "__getattribute__", "__setattr__", "__delattr__"
#: Functions of libraries that are told of, by identity of their code, and what they do.
_TOLD = {
    id(threading.Thread.start.__code__): "starts a thread",
    id(logging.Logger.handle.__code__): "logs a message",
    **{
        id(function.__code__): "draws numbers by chance"
        for function in (random.SystemRandom.getrandbits, random.SystemRandom.random, random.SystemRandom.randbytes)
    },
    id(uuid.uuid1.__code__): "draws numbers by chance",
    id(uuid.uuid4.__code__): "draws numbers by chance",
}
_IS_INSTANCE = id(type(typing.Protocol).__instancecheck__.__code__)
#: How often a class may be listened to: some versions of Python count changes of a class, and have it slow after many.
_MOST_TIMES = 60
_times: WeakKeyDictionary[type, int] = WeakKeyDictionary()
_current: Listener | None = None
#: Events that Python tells of, of which something is left outside, or which ask what is outside.
_EFFECTS = frozenset(
    (
        "open",
        "subprocess.Popen",
        "webbrowser.open",
        "sqlite3.connect",
        "tempfile.mkstemp",
        "tempfile.mkdtemp",
        "urllib.Request",
    )
)
_EFFECTS_OF = ("os.", "shutil.", "socket.", "glob.", "pathlib.", "signal.", "fcntl.", "syslog.", "ftplib.", "smtplib.")


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let the listener's recorder note what happens inside."""
    global _current
    _hear_of_files()
    if sys.version_info < (3, 12):
        from .native import trace_function

        trace_function.prepare()
    _clean_up_leftovers()
    outer, _current = _current, listener
    try:
        with (
            _knowing_young(listener.recorder),
            _silenced(listener),
            _cleaned_up(listener, listener.finish),
            _lines(listener),
        ):
            try:
                yield
            finally:
                listener.is_busy = listener.is_done = True  # Ctrl-C may come before all else is taken away
    finally:
        _current = outer


#: What is to be taken away again. Where Ctrl-C came in the middle of that, the next trace does it.
_leftovers: list[tuple[Listener, Callable[[], None]]] = []


@contextmanager
def _cleaned_up(listener: Listener, clean_up: Callable[[], None]) -> Iterator[None]:
    """Call `clean_up`, which can be called twice, in the end."""
    entry = listener, clean_up
    _leftovers.append(entry)
    try:
        yield
    finally:
        clean_up()
        _leftovers.remove(entry)


def _clean_up_leftovers() -> None:
    for entry in list(_leftovers):
        listener, clean_up = entry
        if listener.is_done:
            clean_up()
            _leftovers.remove(entry)


@contextmanager
def _knowing_young(recorder: Recorder) -> Iterator[None]:
    """Let `recorder.young()` list what was made since: all else is set aside from the garbage collector meanwhile."""
    collects = gc.isenabled()
    gc.disable()
    sets_aside = gc.get_freeze_count() == 0  # else somebody has set objects aside for good
    if sets_aside:
        gc.freeze()
        recorder.young = gc.get_objects
    else:
        gc.collect(0)
        recorder.young = functools.partial(gc.get_objects, 0)
    try:
        yield
    finally:
        if sets_aside:
            gc.unfreeze()
        if collects:
            gc.enable()


class Output:
    """Stands for the standard output: what the function prints would be printed once."""

    def __init__(self, stream: Any, listener: Listener) -> None:
        self._stream = stream
        self._listener = listener

    def write(self, text: str) -> Any:
        listener = self._listener
        if threading.get_ident() == listener.thread and not listener.is_busy and _current is listener:
            listener.recorder.site = _site_above(sys._getframe(1))
            listener.recorder.refuse(
                "prints, which a program would do once, when it is traced. To see values, return the tensor and look "
                "at it outside"
            )
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _silenced(listener: Listener) -> Iterator[None]:
    before = sys.stdout
    if before is None:
        yield
        return
    stand_in = Output(before, listener)

    def clean_up() -> None:
        if sys.stdout is stand_in:
            sys.stdout = before

    with _cleaned_up(listener, clean_up):
        sys.stdout = stand_in
        yield


class Listener:
    """Hands events of its thread to a recorder, but none of those that the recorder itself causes."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.thread = threading.get_ident()
        self.is_busy = False
        self.is_done = False
        self.fresh: set[int] = set()  # what the function has made, known when it is done
        self._hooked: list[tuple[type, dict[str, Any]]] = []
        self._heard: set[tuple[int, int]] = set()  # lines, by identity of function and number
        self._functions: dict[int, Any] = {}  # kept alive, so that identities stay theirs

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Inside, a library works for the trace: what it reads is none of the function's doing."""
        before, self.is_busy = self.is_busy, True
        try:
            yield
        finally:
            self.is_busy = before

    # -- code --------------------------------------------------------------------------------------

    def on_start(self, frame: FrameType) -> bool:
        """Whether the function that starts is the user's, so that its lines are to be listened to."""
        code = frame.f_code
        if self.is_busy or threading.get_ident() != self.thread:
            return False
        if not is_users_code(code):
            if id(code) == _IS_INSTANCE:
                self._hear_of_protocol(frame)
            what = _TOLD.get(id(code))
            if what is not None:
                self.recorder.site = _site_above(frame)
                self.recorder.refuse(f"{what}, which a program would do once, when it is traced")
            return False
        if not is_users_function(code, frame.f_globals) or _makes_librarys_tuple(frame):
            return False
        self.is_busy = True
        try:
            function = function_of(frame)
            if function is not None:
                self._functions[id(function)] = function
            self.recorder.started(function, code, frame.f_globals)
            known = frame.f_locals if code.co_argcount else {}
            for name in code.co_varnames[: code.co_argcount]:  # an object that came in a way that nobody has seen
                thing: Any = known.get(name)
                if is_users_class(thing if issubclass(type(thing), type) else type(thing)):
                    self.recorder.note(thing, name)
            self._hook_classes()
        finally:
            self.is_busy = False
        return True

    def _hear_of_protocol(self, frame: FrameType) -> None:
        """Whether an object follows a protocol depends on which attributes it has."""
        self.is_busy = True
        try:
            self.recorder.read_wholly(frame.f_locals.get("instance"))
            self._hook_classes()
        finally:
            self.is_busy = False

    def on_line(self, frame: FrameType, line: int) -> None:
        if self.is_busy or threading.get_ident() != self.thread:
            return
        self.is_busy = True
        try:
            function = function_of(frame)
            key = (id(frame.f_code) if function is None else id(function), line)
            if key not in self._heard:
                self._heard.add(key)
                self.recorder.reached(function, frame.f_code, frame.f_globals, line)
                self._hook_classes()
            else:
                self.recorder.site = f"{os.path.basename(frame.f_code.co_filename)}:{line}"
        finally:
            self.is_busy = False

    # -- attributes ----------------------------------------------------------------------------------

    def _hook_classes(self) -> None:
        """Have the classes whose objects were noted tell of attributes."""
        for cls in self.recorder.classes[len(self._seen) :]:
            self._seen.append(cls)
            for base in reversed(cls.__mro__):
                if is_users_class(base) and not issubclass(base, type) and all(base is not c for c, _ in self._hooked):
                    self._hook(base)

    @functools.cached_property
    def _seen(self) -> list[type]:
        return []

    def _hook(self, cls: type) -> None:
        times = _times[cls] = _times.get(cls, 0) + 1
        if times > _MOST_TIMES:
            self.recorder.guard_wholly(cls)
            self._hooked.append((cls, {}))
            return
        before = {name: cls.__dict__.get(name) for name in _HOOKED}
        hooks = {name: self._hook_for(getattr(cls, name), name, before[name]) for name in _HOOKED}
        self._hooked.append((cls, before))  # first: Ctrl-C may come in between
        try:
            for name, hook in hooks.items():
                type.__setattr__(cls, name, hook)
        except TypeError:  # a metaclass of C's
            self.recorder.guard_wholly(cls)

    def _hook_for(self, before: Any, name: str, own: Any) -> Any:
        inner = getattr(before, "_inner", before)  # a base's that listens already
        is_read = name == "__getattribute__"
        get_ident, thread = threading.get_ident, self.thread

        def hook(thing: Any, attribute: str, *value: Any) -> Any:
            if not self.is_busy and get_ident() == thread:
                self.is_busy = True
                try:
                    caller = sys._getframe(1)
                    if is_read:
                        self.recorder.read(thing, attribute, caller.f_code, caller.f_lasti)
                    else:
                        self.recorder.write(thing, attribute, _site_above(caller))
                    self._hook_classes()
                finally:
                    self.is_busy = False
            return inner(thing, attribute, *value)

        hook._inner, hook._own = inner, own  # type: ignore[attr-defined]
        return hook

    def finish(self) -> None:
        """Take the hooks away from classes, and see what the function has made."""
        for cls, before in reversed(self._hooked):
            for name, own in before.items():
                if not hasattr(cls.__dict__.get(name), "_own"):
                    continue  # it was not come to that
                if own is None:
                    type.__delattr__(cls, name)
                else:
                    type.__setattr__(cls, name, own)
        self._hooked.clear()
        self._functions.clear()
        self.fresh = {id(thing) for thing in self.recorder.young()}


def _makes_librarys_tuple(frame: FrameType) -> bool:
    """Whether this is what `collections` wrote to make a named tuple, of a class of a library's."""
    if frame.f_code.co_varnames[:1] != ("_cls",):
        return False
    cls = frame.f_locals.get("_cls")
    return isinstance(cls, type) and issubclass(cls, tuple) and not is_users_class(cls)


def _is_told(code: CodeType) -> bool:
    return id(code) in _TOLD or id(code) == _IS_INSTANCE


def _site_above(frame: FrameType | None) -> str:
    """The innermost line that is the user's."""
    while frame is not None and (is_library(frame.f_code) or not is_users_code(frame.f_code)):
        frame = frame.f_back
    return "" if frame is None else f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


# -- events of the interpreter -----------------------------------------------------------------------


@contextmanager
def _lines(listener: Listener) -> Iterator[None]:
    with _by_monitoring(listener) if sys.version_info >= (3, 12) else _by_tracing(listener):
        yield


@contextmanager
def _by_tracing(listener: Listener) -> Iterator[None]:
    from .native.trace_function import pass_over, tracing

    heard: set[FrameType] = set()

    def on_call(frame: FrameType) -> None:
        code = frame.f_code
        if not is_users_code(code) and not _is_told(code):
            pass_over(code)
        elif listener.on_start(frame):
            heard.add(frame)

    def on_line(frame: FrameType) -> None:
        if frame in heard:
            listener.on_line(frame, frame.f_lineno)
        elif not is_users_code(frame.f_code) and not _is_told(frame.f_code):
            pass_over(frame.f_code)

    with tracing(on_call, on_line):
        yield


@contextmanager
def _by_monitoring(listener: Listener) -> Iterator[None]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
    events = monitoring.events
    heard: list[CodeType] = []
    tool = next((number for number in (4, 3, 1, 2, 0) if monitoring.get_tool(number) is None), None)
    if tool is None:
        raise TraceError("pb.compile needs one of the six numbers of sys.monitoring, and other tools have them all.")

    def on_start(code: CodeType, _: int) -> Any:
        if not is_users_code(code) and not _is_told(code):
            return monitoring.DISABLE
        if listener.on_start(sys._getframe(1)) and monitoring.get_local_events(tool, code) == 0:
            monitoring.set_local_events(tool, code, events.LINE)
            heard.append(code)
        return None

    def clean_up() -> None:
        if monitoring.get_tool(tool) != name:
            return
        monitoring.set_events(tool, 0)
        for code in heard:
            monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, events.PY_START, None)
        monitoring.register_callback(tool, events.LINE, None)
        monitoring.free_tool_id(tool)

    name = f"pullback {id(listener)}"
    with _cleaned_up(listener, clean_up):
        monitoring.use_tool_id(tool, name)
        monitoring.register_callback(tool, events.PY_START, on_start)
        monitoring.register_callback(tool, events.LINE, lambda code, line: listener.on_line(sys._getframe(1), line))
        monitoring.set_events(tool, events.PY_START)
        yield


@functools.cache
def _hear_of_files() -> None:
    """Be told of files that are opened. An audit hook stays for good; while nobody listens it costs next to nothing."""

    def audit(event: str, args: Any) -> None:
        listener = _current
        if listener is None or listener.is_busy or threading.get_ident() != listener.thread:
            return
        if event not in _EFFECTS and not event.startswith(_EFFECTS_OF):
            return
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith("<frozen importlib") or frame.f_code.co_name == "updatecache":
                return
            if is_users_code(frame.f_code):
                break
            frame = frame.f_back
        listener.recorder.site = _site_above(frame)
        what = f"opens the file {args[0]}" if event == "open" else f"calls {event}"
        listener.recorder.refuse(f"{what}, which a program would do once, when it is traced")

    sys.addaudithook(audit)
