"""Requests from a cell to its host, and the replies (CP-021, CP-023, CP-041, CP-131).

A request carries the id of the cell that the calling code belongs to. Replies find
their request by (execution, request) id; one that nobody waits for any more is
counted and dropped. Authority ends with the cell: what its background tasks still
wait for then ends with scope_expired, and so does what they ask later.
"""

from __future__ import annotations

from reeve_worker.capture import ORIGIN
from reeve_worker.messages import MAX_REQUESTS
from reeve_worker.strictjson import Fault, check

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, Callable
    from reeve_worker.capture import Cell
    from reeve_worker.channel import Channel


class HostError(Exception):
    """The host, or the worker on its behalf, refused a request or failed at it.

    code is stable and from a closed list (invalid_request, unknown_method,
    scope_expired, request_limit, denied, not_found, conflict, limit_exceeded, timeout,
    unavailable, internal, ...); message is for people.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[type[HostError], tuple[str, str]]:
        return type(self), (self.code, self.message)


HostError.__module__ = "reeve"


class Yielded(BaseException):
    """Ends a cell whose wait the host accepted. Catching it gives nothing back."""


Yielded.__module__ = "reeve"


class Requests:
    """The requests in flight. call runs on any loop's thread, deliver on the reader's."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting: dict[tuple[str, str], tuple[Cell, str, Any, Any]] = {}
        self.late = 0  # replies that nobody waited for any more
        self.forked = False  # in a child of a cell, which has no host
        self.stop_cell: Callable[[], None] = lambda: None
        self.counters: Callable[[], dict[str, int]] = dict

    async def call(self, method: str, fields: dict[str, Any]) -> Any:
        """Send one request and return the value of its reply, or raise HostError."""
        import asyncio

        cell = self._admit(fields)
        cell.requests += 1
        identity = f"r-{cell.requests}"
        key = cell.id, identity
        loop = asyncio.get_running_loop()
        future: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._waiting[key] = cell, method, loop, future
        try:
            self._send(cell, identity, {"method": method, **fields})
            result = await future
        finally:
            self._waiting.pop(key, None)
        if result["kind"] == "error":
            raise HostError(result["code"], result["message"])
        return result["value"]

    def _admit(self, fields: dict[str, Any]) -> Cell:
        cell = ORIGIN.get()
        if cell is None or self.forked:
            raise HostError("scope_expired", "this code belongs to no cell")
        if cell.yielded:
            raise HostError("scope_expired", f"cell {cell.id} has ended with its wait")
        if not cell.running:
            raise HostError("scope_expired", f"cell {cell.id}, which this code belongs to, has ended")
        if cell.requests >= MAX_REQUESTS:
            raise HostError("request_limit", f"a cell may ask its host {MAX_REQUESTS} times")
        for name, value in fields.items():
            try:
                check(value, name)
            except (TypeError, ValueError) as error:
                raise HostError("invalid_request", str(error)) from None
        return cell

    def _send(self, cell: Cell, identity: str, request: dict[str, Any]) -> None:
        try:
            self._channel.send(
                {"kind": "host_request", "id": identity, "execution_id": cell.id, "request": request}
            )
        except Fault as fault:
            raise HostError("limit_exceeded", str(fault)) from None

    def deliver(self, message: dict[str, Any]) -> None:
        """Hand a reply to whoever waits for it."""
        entry = self._waiting.pop((message["execution_id"], message["id"]), None)
        if entry is None:
            self.late += 1
            return
        cell, method, loop, future = entry
        if method == "runtime.wait" and message["result"]["kind"] == "ok":
            cell.yielded = True
        self._settle(loop, future, message["result"])

    def _settle(self, loop: Any, future: Any, result: dict[str, Any]) -> None:
        def settle() -> None:
            if future.done():
                self.late += 1
            else:
                future.set_result(result)

        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:
            self.late += 1  # the loop that asked is closed

    def end(self, cell: Cell) -> None:
        """End the authority of a cell."""
        for key in [key for key in list(self._waiting) if key[0] == cell.id]:
            entry = self._waiting.pop(key, None)
            if entry is not None:
                text = f"cell {cell.id} ended before its host answered"
                self._settle(entry[2], entry[3], {"kind": "error", "code": "scope_expired", "message": text})


catalogue = ""  # file that describes the verbs of the host, empty for none
current: Requests | None = None  # of this process; the worker sets it, the SDK uses it


async def call(method: str, **fields: Any) -> Any:
    """Ask the host of this process."""
    if current is None:
        raise HostError("unavailable", "this process is no worker of reeve")
    return await current.call(method, fields)
