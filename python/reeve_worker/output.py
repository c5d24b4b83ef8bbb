"""What one cell prints: budget, live frames, last part, spool (CP-009, CP-141, CP-143).

The first half of the budget leaves as live frames while it is printed; of the rest
the newest half is kept and leaves with the completion; what is in neither is counted.
Writes only collect text under a lock; encoding and sending happen when enough has
collected, when the stream changes, or when the flusher's tick comes round.
"""

from __future__ import annotations

import _thread
from time import sleep

from reeve_worker.messages import MAX_LATE, MAX_OUTPUT, MAX_RECORDS

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, Callable
    from collections import deque
else:
    from _collections import deque


HALF = MAX_OUTPUT // 2
HALF_RECORDS = MAX_RECORDS // 2
TICK = 0.05  # seconds text may wait before it is sent
_LIVE_BATCH = 4_096  # characters collected before a live frame leaves
_SPOOL_BATCH = 65_536  # the same once nothing goes live any more
_SLICE = 1 << 20  # characters encoded at once, which bounds the copy of a huge text

if TYPE_CHECKING:
    Send = Callable[[dict[str, Any]], None]
    OpenSpool = Callable[[str], Any]


def encode(text: str) -> bytes:
    r"""UTF-8, with half a surrogate pair written as its \udxxx escape."""
    return text.encode("utf-8", "backslashreplace")


def prefix(data: bytes, size: int) -> bytes:
    """The longest prefix of at most size bytes that ends between two characters."""
    if len(data) <= size:
        return data
    while size > 0 and data[size] & 0xC0 == 0x80:
        size -= 1
    return data[:size]


def suffix(data: bytes, size: int) -> bytes:
    """The longest suffix of at most size bytes that begins between two characters."""
    start = max(len(data) - size, 0)
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


class Output:
    """The output of one cell. Any thread may write; one finishes it."""

    def __init__(self, cell: str, send: Send, open_spool: OpenSpool, flusher: "Flusher") -> None:
        self.cell = cell
        self._send = send
        self._open_spool = open_spool
        self._flusher = flusher
        self._lock = _thread.RLock()  # type: ignore[attr-defined]
        self._pending: list[str] = []
        self._pending_stream = ""
        self._pending_size = 0
        self._batch = _LIVE_BATCH
        self._watched = False
        self._seq = 0
        self._head: list[bytes] = []  # kept until the spool needs it
        self._head_size = 0
        self._head_records = 0
        self._head_stream = ""
        self._head_open = True
        self._finishing = False
        self._unsent: list[tuple[str, bytes]] = []
        self._ring: deque[tuple[str, bytes]] = deque()
        self._ring_size = 0
        self._dropped = 0
        self._spool: Any = None
        self.done = False
        self._late = 0
        self.late_dropped = 0

    def write(self, stream: str, text: str) -> None:
        """Take text printed to stream, "stdout" or "stderr"."""
        with self._lock:
            if stream != self._pending_stream:
                self._drain()
                self._pending_stream = stream
            self._pending.append(text)
            self._pending_size += len(text)
            if self._pending_size >= self._batch:
                self._drain()
            elif not self._watched:
                self._watched = True
                self._flusher.watch(self)

    def flush(self) -> None:
        """Send or keep what has collected; the flusher calls it."""
        with self._lock:
            self._watched = False
            self._drain()

    def finish(self, result: str | None) -> tuple[list[dict[str, str]], int]:
        """Close the record; return what was not sent live and the bytes dropped.

        result is the text of the final value, None when there is none. Whatever is
        written afterwards is late output.
        """
        with self._lock:
            self._finishing = True
            self._drain()
            self._finishing = False
            self.done = True
            records = self._unsent
            if result is not None:
                data, cut = self._trim_result(encode(result))
                self._dropped += cut
                self._shrink_ring(HALF - len(data) if self._ring else 0)
                records = records + self._kept() + [("result", data)]
            else:
                self._shrink_ring(HALF)
                records = records + self._kept()
            dropped = self._dropped
            if self._spool is not None:
                self._spool.close()
            self._spool = None
            self._head, self._unsent = [], []
            self._ring.clear()
            self._batch = _LIVE_BATCH
        return [{"stream": s, "text": d.decode()} for s, d in records], dropped

    def _trim_result(self, data: bytes) -> tuple[bytes, int]:
        """Fit a result into what the budget leaves: its head and its tail."""
        room = HALF // 2 if self._ring else MAX_OUTPUT - self._head_size
        if len(data) <= room:
            return data, 0
        note = f"\n[... of {len(data)} bytes the middle is left out ...]\n".encode()
        head = prefix(data, (room - len(note)) * 3 // 4)
        tail = suffix(data, (room - len(note)) // 4)
        return head + note + tail, len(data) - len(head) - len(tail)

    def _drain(self) -> None:
        if not self._pending:
            return
        text = "".join(self._pending)
        self._pending.clear()
        self._pending_size = 0
        for start in range(0, len(text), _SLICE):
            data = encode(text[start : start + _SLICE])
            if self.done:
                self._take_late(self._pending_stream, data)
            else:
                self._take(self._pending_stream, data)

    def _take(self, stream: str, data: bytes) -> None:
        rest = data
        if self._head_open:
            if stream != self._head_stream:
                self._head_stream = stream
                self._head_records += 1
            head = prefix(data, HALF - self._head_size) if self._head_records <= HALF_RECORDS else b""
            if head:
                self._head.append(head)
                self._head_size += len(head)
                self._live(stream, head)
            rest = data[len(head) :]
            if not rest:
                return
            self._close_head()
        self._keep(stream, rest)

    def _close_head(self) -> None:
        self._head_open = False
        self._batch = _SPOOL_BATCH
        self._spool = self._open_spool(self.cell)
        if self._spool is not None:
            self._spool.append(b"".join(self._head))
        self._head.clear()

    def _live(self, stream: str, data: bytes) -> None:
        if self._finishing:
            self._unsent.append((stream, data))
            return
        self._send(
            {"kind": "output", "id": self.cell, "stream": stream, "text": data.decode(), "seq": self._seq}
        )
        self._seq += 1

    def _keep(self, stream: str, data: bytes) -> None:
        if self._spool is not None:
            self._spool.append(data)
        last = suffix(data, HALF)
        self._dropped += len(data) - len(last)
        self._ring.append((stream, last))
        self._ring_size += len(last)
        while self._ring_size - len(self._ring[0][1]) >= HALF:
            gone = len(self._ring.popleft()[1])
            self._ring_size -= gone
            self._dropped += gone

    def _shrink_ring(self, size: int) -> None:
        while self._ring and self._ring_size > size:
            stream, oldest = self._ring.popleft()
            left = suffix(oldest, max(len(oldest) - (self._ring_size - size), 0))
            self._ring_size -= len(oldest) - len(left)
            self._dropped += len(oldest) - len(left)
            if left:
                self._ring.appendleft((stream, left))

    def _kept(self) -> list[tuple[str, bytes]]:
        """The ring as records, the oldest beyond the number allowed dropped."""
        joined: list[tuple[str, list[bytes]]] = []
        for stream, data in self._ring:
            if joined and joined[-1][0] == stream:
                joined[-1][1].append(data)
            else:
                joined.append((stream, [data]))
        records = [(stream, b"".join(parts)) for stream, parts in joined]
        surplus = max(len(records) - (HALF_RECORDS - 1), 0)
        self._dropped += sum(len(data) for _, data in records[:surplus])
        return records[surplus:]

    def _take_late(self, stream: str, data: bytes) -> None:
        kept = prefix(data, MAX_LATE - self._late)
        self.late_dropped += len(data) - len(kept)
        if kept:
            self._late += len(kept)
            self._live(stream, kept)


class Flusher:
    """A thread that flushes, TICK after the first write, what waits in an Output.

    It starts with the first print of a worker and sleeps while nothing waits.
    """

    def __init__(self, start_thread: Callable[..., Any]) -> None:
        self._start_thread = start_thread
        self._lock = _thread.RLock()  # type: ignore[attr-defined]
        self._wake = _thread.allocate_lock()
        self._wake.acquire()
        self._waiting: list[Output] = []
        self._parked = False
        self._started = False

    def watch(self, output: Output) -> None:
        """Flush output within TICK."""
        with self._lock:
            self._waiting.append(output)
            if not self._started:
                self._started = True
                self._start_thread(self._run, ())
            elif self._parked:
                self._parked = False
                self._wake.release()

    def flush(self) -> None:
        """Flush at once whatever waits; for a worker that leaves."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for output in waiting:
            output.flush()

    def _run(self) -> None:
        while True:
            sleep(TICK)
            with self._lock:
                waiting, self._waiting = self._waiting, []
                self._parked = park = not waiting
            for output in waiting:
                output.flush()
            if park:
                self._wake.acquire()
