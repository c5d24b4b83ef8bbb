"""The standard streams of cells, and which cell a piece of running code belongs to.

ORIGIN is the one source of attribution: a context variable that tasks copy from the
code that made them and that new threads are given by start_thread. Output, host
requests and late text all go by it (CP-143, CP-131).
"""

from __future__ import annotations

import _thread
import codecs
import os

from reeve_worker.output import Output

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, NoReturn
    import contextvars as _contextvars
    from io import BufferedIOBase, TextIOBase
else:
    import _contextvars
    from _io import _BufferedIOBase as BufferedIOBase
    from _io import _TextIOBase as TextIOBase


class Cell:
    """One execute operation, as far as code that runs in it can be told apart."""

    def __init__(self, identity: str, output: Output) -> None:
        self.id = identity
        self.output = output
        self.requests = 0
        self.running = True
        self.yielded = False
        self.artifacts: Any = None


ORIGIN: "_contextvars.ContextVar[Cell | None]" = _contextvars.ContextVar("reeve_origin", default=None)


class Capture:
    """Where the streams write to. The worker owns it and sets its fields."""

    def __init__(self) -> None:
        self.forked = False
        self.after_write: Callable[[], None] = lambda: None
        self.fallback: Callable[[], Cell | None] = lambda: None

    def write(self, descriptor: int, text: str) -> None:
        """File text under the cell it belongs to.

        Text of a forked child, or of a thread that no cell started, has no cell: it
        goes to the process's own descriptor, which the host drains.
        """
        cell = ORIGIN.get() or self.fallback()
        if self.forked or cell is None:
            data = text.encode("utf-8", "backslashreplace")
            while data:
                data = data[os.write(descriptor, data) :]
            return
        cell.output.write("stdout" if descriptor == 1 else "stderr", text)
        self.after_write()


    def flush(self) -> None:
        """Send what the calling code's cell has printed."""
        cell = ORIGIN.get() or self.fallback()
        if cell is not None and not self.forked:
            cell.output.flush()
            self.after_write()


class TextStream(TextIOBase):
    """sys.stdout or sys.stderr of cells."""

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None
    line_buffering = True
    write_through = True
    mode = "w"

    def __init__(self, capture: Capture, descriptor: int) -> None:
        self._capture = capture
        self._descriptor = descriptor
        self._closed = False
        self.name = "<stdout>" if descriptor == 1 else "<stderr>"
        self.buffer = ByteStream(self)

    def write(self, text: str) -> int:
        """Print text."""
        if self._closed:
            raise ValueError("I/O operation on closed file.")
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._capture.write(self._descriptor, text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        """Print every string of lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Send what was printed now, and not within a twentieth of a second."""
        if self._closed:
            raise ValueError("I/O operation on closed file.")
        self._capture.flush()

    def close(self) -> None:
        """Refuse writes until the next cell begins."""
        self._closed = True

    def reopen(self) -> None:
        """Undo close."""
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether this cell has closed the stream."""
        return self._closed

    def reconfigure(self, **_settings: Any) -> None:
        """Accept settings as a text file does; encoding and buffering stay."""

    def fileno(self) -> int:
        """The process's own descriptor, for subprocesses; the host drains it."""
        return self._descriptor

    def isatty(self) -> bool:
        """False."""
        return False

    def writable(self) -> bool:
        """True."""
        return True

    def readable(self) -> bool:
        """False."""
        return False


class ByteStream(BufferedIOBase):
    """The buffer of a TextStream: bytes that are not text come out as escapes."""

    def __init__(self, text: TextStream) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self.raw: Any = self
        self.name = text.name
        self.mode = "wb"

    def write(self, data: Any) -> int:
        """Print bytes."""
        raw = bytes(data)
        text = self._decoder.decode(raw)
        if text:
            self._text.write(text)
        return len(raw)

    def flush(self) -> None:
        """Print what may have been the beginning of a character."""
        rest = self._decoder.decode(b"", True)
        self._decoder.reset()
        if rest:
            self._text.write(rest)

    def close(self) -> None:
        """Close the text stream."""
        self._text.close()

    @property
    def closed(self) -> bool:
        """Whether the text stream is closed."""
        return self._text.closed

    def fileno(self) -> int:
        """The process's own descriptor."""
        return self._text.fileno()

    def isatty(self) -> bool:
        """False."""
        return False

    def writable(self) -> bool:
        """True."""
        return True


class EmptyInput(TextIOBase):
    """sys.stdin of cells: at its end from the start."""

    encoding = "utf-8"
    errors = "strict"
    name = "<stdin>"
    mode = "r"

    def read(self, size: int | None = -1, /) -> str:
        """Return the empty string."""
        return ""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """Return the empty string."""
        return ""

    def readable(self) -> bool:
        """True."""
        return True

    def fileno(self) -> int:
        """The process's own standard input, which is empty too."""
        return 0

    def isatty(self) -> bool:
        """False."""
        return False

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


NO_INPUT = (
    "input() has nobody to ask: a cell has no keyboard; write the value into the code, "
    "for example name = 'Ada' in place of name = input()"
)


def refuse_input(prompt: object = "", /) -> NoReturn:
    """Stand in for input(): a cell has no keyboard."""
    raise EOFError(NO_INPUT)


def thread_starters() -> None:
    """Make threads belong to the cell that starts them.

    Installed before threading is imported, which keeps its own reference.
    """
    plain = _thread.start_new_thread

    def start_new_thread(function: Any, args: Any, kwargs: Any = {}, /) -> int:
        if not callable(function):
            raise TypeError("first arg must be callable")
        return plain(_in_origin, (ORIGIN.get(), function, args, kwargs))

    _thread.start_new_thread = _thread.start_new = start_new_thread  # type: ignore
    joinable: Any = getattr(_thread, "start_joinable_thread", None)
    if joinable is None:
        return

    def start_joinable_thread(function: Any, handle: Any = None, daemon: bool = True) -> Any:
        return joinable(_Bound(ORIGIN.get(), function), handle=handle, daemon=daemon)

    setattr(_thread, "start_joinable_thread", start_joinable_thread)


class _Bound:
    def __init__(self, origin: "Cell | None", function: Any) -> None:
        self._origin = origin
        self._function = function

    def __call__(self) -> Any:
        return _in_origin(self._origin, self._function, (), {})


def _in_origin(origin: "Cell | None", function: Any, args: Any, kwargs: Any) -> Any:
    ORIGIN.set(origin)
    return function(*args, **kwargs)
