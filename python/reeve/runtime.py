"""The runtime this cell runs in: wait for input, look at oneself, read instructions."""

from typing import Any, NoReturn

from reeve_worker import requests as _requests
from reeve_worker.requests import Yielded, call


async def wait(seconds: float | None = None, reason: str = "waiting for input") -> NoReturn:
    """End this cell and sleep until input arrives or `seconds` have passed.

    seconds: None for no deadline, else more than 0 and at most 600.
    reason: 1 to 2,000 characters that say what is waited for.

    When the host accepts, the cell is over: its status is `yielded`, no line after this
    one counts, and catching what ends it gives nothing back. The wait and its deadline
    are durable; input that is already there wakes at once. For a pause inside a cell use
    `asyncio.sleep`.
    """
    await call("runtime.wait", seconds=seconds, reason=reason)
    if _requests.current is not None:
        _requests.current.stop_cell()
    raise Yielded(reason)


async def inspect() -> dict[str, Any]:
    """Return the state of this session.

    Members: now (RFC 3339) and now_ms, session_id, execution_id, generation, behavior,
    skills_revision, header, inbox {seen, pending}, requests {used, max}, discipline,
    isolation, limits {frame, code, output, records, error, send}, usage.
    """
    value: dict[str, Any] = await call("runtime.inspect")
    return value


async def instructions() -> dict[str, Any]:
    """Return the instructions in force now, revisions applied.

    Members: digest, text, sources [{name, digest}], pin, revisions, complete, stopped.
    `complete` is false when a revision does not reconstruct; `stopped` then says where.
    """
    value: dict[str, Any] = await call("runtime.instructions")
    return value


def counters() -> dict[str, int]:
    """Return what this worker dropped so far, without asking the host.

    Members: late_replies (host replies nobody waited for any more), ignored_interrupts
    (for an operation that was not running), late_output (bytes printed after the end of
    the last cell beyond what is kept).
    """
    return _requests.current.counters() if _requests.current is not None else {}
