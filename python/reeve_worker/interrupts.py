"""How a running cell is stopped from outside (CP-026).

The reader thread only raises SIGINT at the main thread. What it means is decided by
the handler, which alone knows where the main thread stands: inside code of the cell
it becomes KeyboardInterrupt; at an await the cell's task is cancelled; inside the
worker's own code it is held back until that code is done.
"""

from __future__ import annotations

import _thread
from time import sleep

from reeve_worker.errors import is_ours

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, Callable
    from types import CodeType, FrameType
    import signal as _signal
else:
    import _signal


_TURNS = 600  # milliseconds in which a signal may go unseen before it is left to the host's own
_REPEAT = 20  # milliseconds between two signals


class Interrupts:
    """The state of an interrupt; made and read by the main thread."""

    def __init__(self) -> None:
        self._main = _thread.get_ident()
        self._asked = ""  # the id an interrupt frame named, "" for a bare signal
        self._held = False
        self._seen = False  # the handler has run since the last ask
        self.running = ""  # the id of the operation that may be interrupted
        self.taken = False  # the running operation has been interrupted
        self.ignored = 0  # interrupts for an operation that was not running
        self.cancel: Callable[[], Any] | None = None  # set while a cell's task runs on the loop
        self.at_next_await: Callable[[Callable[[], None]], Any] | None = None  # as long as cancel
        self.callback_code: CodeType | None = None  # the loop's frame around code it calls

        self._handler = self._handle  # one object, to be compared by identity

    def install(self) -> None:
        """Make SIGINT ours again, whatever a cell did to it."""
        if _signal.getsignal(_signal.SIGINT) is not self._handler:
            _signal.signal(_signal.SIGINT, self._handler)

    def on_main(self) -> bool:
        """Whether the caller is the main thread."""
        return _thread.get_ident() == self._main

    def ask(self, operation: str) -> None:
        """Interrupt an operation that was accepted; called by the reader thread."""
        self._asked = operation
        if operation != self.running:
            return  # taken from the socket, not begun yet: begin sees the wish
        cancel = self.cancel
        if cancel is not None and _signal.getsignal(_signal.SIGINT) is not self._handler:
            self.taken = True
            cancel()
            return
        if _signal.getsignal(_signal.SIGINT) is not self._handler:
            _signal.pthread_kill(self._main, _signal.SIGINT)
            return
        # A signal that comes just before a blocking call does not end that call, so
        # it is sent again until the handler has seen one.
        self._seen = False
        for turn in range(_TURNS):
            if self._seen or self.running != operation:
                return
            if turn % _REPEAT == 0:
                _signal.pthread_kill(self._main, _signal.SIGINT)
            sleep(0.001)

    def begin(self, operation: str) -> None:
        """Start an operation; an interrupt can reach it from now on."""
        self.taken = False
        self.running = operation
        self._held = self._asked == operation
        if not self._held:
            self._asked = ""

    def end(self) -> None:
        """End the operation; later interrupts for it are ignored."""
        self.running = self._asked = ""
        self._held = False

    def release(self) -> None:
        """Raise an interrupt that was held back; called where the worker's code is done."""
        if self._held and _thread.get_ident() == self._main:
            self._held = False
            self.taken = True
            raise KeyboardInterrupt

    def _handle(self, _number: int, frame: FrameType | None) -> None:
        self._seen = True
        if not self.running or self._asked not in ("", self.running):
            self.ignored += 1
            return
        if self.cancel is not None and not self._inside_callback(frame):
            self.taken = True
            self.cancel()
            return
        if frame is not None and is_ours(frame.f_code.co_filename):
            self._held = True
            if self.at_next_await is not None:
                self.at_next_await(self._cancel_held)
            return
        self.taken = True
        raise KeyboardInterrupt

    def _cancel_held(self) -> None:
        """Cancel the cell, which has come to an await, if no release came first."""
        if self._held and self.cancel is not None:
            self._held = False
            self.taken = True
            self.cancel()

    def _inside_callback(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if frame.f_code is self.callback_code:
                return True
            if is_ours(frame.f_code.co_filename) and frame.f_code.co_name == "run_on_loop":
                return False
            frame = frame.f_back
        return False
