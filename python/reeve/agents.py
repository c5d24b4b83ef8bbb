"""Another name for opening a peer."""

from typing import Any, Sequence

from reeve.peer import Mode
from reeve_worker.requests import call


async def open(mode: Mode = "independent", evidence: Sequence[str] = ()) -> dict[str, Any]:
    """Start a session beside this one; the same as peer.open."""
    value: dict[str, Any] = await call("agents.open", mode=mode, evidence=[*evidence])
    return value
