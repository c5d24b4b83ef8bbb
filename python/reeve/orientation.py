"""Texts that orient later work: staged as candidates, adopted for a scope."""

from typing import Any, Mapping

from reeve_worker.requests import call

GLOBAL: Mapping[str, str] = {"kind": "global"}


async def stage(candidate_id: str, text: str, target: str, scope: Mapping[str, str] = GLOBAL) -> dict[str, Any]:
    """Store an immutable candidate; return candidate_id, digest, target, scope, event_id, staged_at_ms.

    text: 1 to 16,384 bytes. target: 1 to 256 bytes, stored and not interpreted.
    scope: {"kind": "global"}, {"kind": "session", "id": ...} or {"kind": "workspace", "root": ...}.
    The same bytes again return the candidate, other bytes under its id are conflict.
    """
    value: dict[str, Any] = await call(
        "orientation.stage", candidate_id=candidate_id, text=text, target=target, scope=dict(scope)
    )
    return value


async def current(scope: Mapping[str, str] = GLOBAL) -> dict[str, Any] | None:
    """Return what is adopted for exactly this scope, or None.

    Members: candidate_id, digest, text, target, operation_id, event_id, adopted_at_ms.
    """
    value: dict[str, Any] = await call("orientation.current", scope=dict(scope))
    adopted: dict[str, Any] | None = value["current"]
    return adopted


async def adopt(candidate_id: str, operation_id: str) -> dict[str, Any]:
    """Make a candidate current for its scope; idempotent by operation_id.

    Result: candidate_id, operation_id, scope, digest, previous, event_id, adopted_at_ms.
    """
    value: dict[str, Any] = await call(
        "orientation.adopt", candidate_id=candidate_id, operation_id=operation_id
    )
    return value
