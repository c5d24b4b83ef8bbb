"""The reader thread: it takes frames from the host whatever the running cell does.

It never runs code of a cell. What it may touch of the worker: the inbox, the id of
the operation under way, the interrupt, and the replies that requests wait for.
"""

from __future__ import annotations

import os
from posix import _exit
from time import sleep

from reeve_worker.errors import describe
from reeve_worker.strictjson import Fault

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any

    from reeve_worker.runloop import Worker

_GRACE = 1.5  # seconds a shutdown may take before the process leaves by force
EXIT_FAULT = 70  # the host broke the protocol


class Reader:
    """Takes the frames of one connection."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def run(self) -> None:
        """Take frames until the host is gone; never returns."""
        try:
            while True:
                message = self._worker.channel.receive()
                if message is None:
                    _exit(0)
                self._take(message)
        except Fault as fault:
            os.write(2, f"reeve worker: read frame: {fault}\n".encode())
        except BaseException as error:
            os.write(2, f"reeve worker: reader failed: {describe(error)}\n".encode())
        _exit(EXIT_FAULT)

    def _take(self, message: dict[str, Any]) -> None:
        worker, kind = self._worker, message["kind"]
        if kind == "execute":
            running = worker.claim(message["id"])
            if running:
                worker.refuse(message["id"], f"operation {running!r} is still running")
            else:
                worker.hand_over(message)
        elif kind == "interrupt":
            if message["id"] == worker.busy:
                worker.interrupts.ask(message["id"])
            else:
                worker.interrupts.ignored += 1
        elif kind == "host_reply":
            worker.deliver(message)
        elif kind == "shutdown":
            self._shut_down(message)
        else:
            raise Fault(f"message.kind: {kind!r} is not for a workbench")

    def _shut_down(self, message: dict[str, Any]) -> None:
        self._worker.hand_over(message)
        if self._worker.busy:
            self._worker.interrupts.ask(self._worker.busy)
        sleep(_GRACE)
        _exit(0)
