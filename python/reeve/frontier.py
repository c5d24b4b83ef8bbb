"""The point up to which a session's history is folded."""

from typing import Any

from reeve_worker.requests import call


async def select() -> dict[str, Any]:
    """Select the largest closed prefix of this session for folding.

    Result: selection_id, from_event, upto_event, events, bytes, installed, selected_at_ms.
    Nothing closed yet is conflict.
    """
    value: dict[str, Any] = await call("frontier.select")
    return value
