"""The framed connection to the host.

Any thread may send; frames leave whole and in the order in which they were handed
over. One thread receives. A signal handler that interrupts a send and sends itself
only queues: whoever holds the socket sends what is queued before it lets go.
"""

from __future__ import annotations

import _socket
import _thread
from posix import _exit, fstat, write

from reeve_worker.messages import MAX_FRAME, check_envelope
from reeve_worker.strictjson import OVER, Fault, decode, encode

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any
    from collections import deque
else:
    from _collections import deque

EXIT_DETACHED = 71  # a cell closed the connection, or put another file in its place


class Channel:
    """One connection, bound to one session and generation."""

    def __init__(self, sock: "_socket.socket", session: str, generation: str) -> None:
        self._sock = sock
        self._session = session
        self._generation = generation
        self._head = f'{{"version":1,"session_id":"{session}","generation":"{generation}","message":'
        self._queue: deque[bytes] = deque()
        self._rest = memoryview(b"")  # of the frame being sent
        self._sending = _thread.allocate_lock()
        self._received = bytearray()
        self._inode = fstat(sock.fileno()).st_ino
        self.closed = False

    def send(self, message: dict[str, Any]) -> None:
        """Queue one message and send what is queued.

        A host that has gone is no error here: the reader sees it too and ends the
        process. Raises Fault for a message that no frame can hold.
        """
        body = (self._head + encode(message) + "}").encode()
        if len(body) > MAX_FRAME:
            raise Fault(f"frame of {len(body)} bytes is over the limit of {MAX_FRAME}", OVER)
        self._queue.append(len(body).to_bytes(4, "big") + body)
        self.flush()

    def flush(self) -> None:
        """Send what an interrupted send left behind."""
        while (self._queue or self._rest) and self._sending.acquire(False):
            try:
                self._drain()
            finally:
                self._sending.release()

    def settle(self, seconds: float) -> None:
        """Send what is queued, waiting a while for the thread that is sending."""
        if self._sending.acquire(True, seconds):
            self._sending.release()
        self.flush()

    def _drain(self) -> None:
        while self._rest or self._queue:
            if not self._rest:
                self._rest = memoryview(self._queue.popleft())
            if self.closed:
                self._rest = memoryview(b"")
                continue
            self._check()
            try:
                self._rest = self._rest[self._sock.send(self._rest) :]
            except OSError:
                self.closed = True

    def _check(self) -> None:
        """End the process if the descriptor is not the connection any more.

        The host sees no end of a socket that the reader still waits at, and a file
        that a cell opened since must not be sent frames.
        """
        try:
            if fstat(self._sock.fileno()).st_ino == self._inode:
                return
        except OSError:
            pass  # closed: the same end
        try:
            write(2, b"reeve worker: a cell closed the worker's connection to reeve\n")
        finally:
            _exit(EXIT_DETACHED)

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, None when the host has closed, or raise Fault."""
        buffer = self._received
        while True:
            if len(buffer) >= 4:
                size = int.from_bytes(buffer[:4], "big")
                if size == 0:
                    raise Fault("length 0: a frame holds at least one byte")
                if size > MAX_FRAME:
                    raise Fault(f"length {size} is over the limit of {MAX_FRAME}", OVER)
                if len(buffer) >= 4 + size:
                    frame = bytes(buffer[4 : 4 + size])
                    del buffer[: 4 + size]
                    return check_envelope(decode(frame), self._session, self._generation)
            self._check()
            try:
                chunk = self._sock.recv(65_536)
            except OSError:
                chunk = b""
            if not chunk:
                if buffer:
                    raise Fault("the connection ended inside a frame")
                return None
            buffer += chunk

    def abandon(self) -> None:
        """Close this process's end without a word; a forked child does so."""
        self.closed = True
        self._sock.close()
