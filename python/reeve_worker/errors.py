"""How an exception of a cell is told: the traceback without the worker's own frames."""

from __future__ import annotations

import os
import sys

from reeve_worker.messages import MAX_ERROR
from reeve_worker.output import encode, prefix, suffix

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any
    from types import TracebackType

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_HEAD = 16 << 10  # of a long error, bytes kept from its beginning; the rest is its end


def is_ours(filename: str) -> bool:
    """Whether a code object's file belongs to the worker or its SDK."""
    return filename.startswith(_OURS)


def skip_ours(trace: TracebackType | None) -> TracebackType | None:
    """Drop the frames at the outer end of a traceback that only lead to the cell.

    Those are the worker's, and asyncio's between them when the cell ran on the loop.
    """
    asyncio = sys.modules.get("asyncio")
    loop = os.path.dirname(asyncio.__file__ or "") + os.sep if asyncio else ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not is_ours(name) and not (loop and name.startswith(loop)):
            break
        trace = trace.tb_next
    return trace


def bound(text: str) -> str:
    """Fit error text into its limit, keeping head and tail (CP-142)."""
    data = encode(text)
    if len(data) <= MAX_ERROR:
        return data.decode()
    note = f"\n[... of {len(data)} bytes the middle is left out ...]\n".encode()
    return (prefix(data, _HEAD) + note + suffix(data, MAX_ERROR - _HEAD - len(note))).decode()


def describe(error: BaseException) -> str:
    """Return the text of error as the interpreter would print it.

    Must not fail: an exception whose own text cannot be made still has a type.
    """
    try:
        return bound(_formatted(error))
    except BaseException as second:
        names = f"{type(error).__name__} (and telling it failed with {type(second).__name__})"
        return bound(f"{names}\n")


def _formatted(error: BaseException) -> str:
    import traceback

    told = traceback.TracebackException.from_exception(error)
    todo: list[Any] = [told]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        kept = [f for f in one.stack if not is_ours(f.filename)]
        one.stack = traceback.StackSummary.from_list(kept)
        todo += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]
    return "".join(told.format())


def keep_for_debugger(error: BaseException) -> None:
    """Set sys.last_exc and its kin, as the interactive interpreter does."""
    sys.last_type, sys.last_value = type(error), error
    sys.last_traceback = skip_ours(error.__traceback__)
    if sys.version_info >= (3, 12):
        sys.last_exc = error
