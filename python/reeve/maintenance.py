"""Durable work items: something that should be looked at, and what came of it."""

from typing import Any, Literal, Sequence

from reeve_worker.requests import call

Outcome = Literal["no-change", "changed", "deferred", "failed"]


async def originate(purpose: str, reason: str, evidence_refs: Sequence[str] = ()) -> dict[str, Any]:
    """Open a work item; return work_item_id, state, event_id, opened_at_ms.

    purpose: 1 to 256 bytes. reason: 1 to 4,096 bytes. evidence_refs: at most 64, all of
    which must resolve (see evidence.resolve).
    """
    value: dict[str, Any] = await call(
        "maintenance.originate", purpose=purpose, reason=reason, evidence_refs=list(evidence_refs)
    )
    return value


async def assess(work_item_id: str, outcome: Outcome) -> dict[str, Any]:
    """Close a work item once; return work_item_id, outcome, event_id, assessed_at_ms.

    The same outcome again returns the first receipt, another one is conflict.
    """
    value: dict[str, Any] = await call("maintenance.assess", work_item_id=work_item_id, outcome=outcome)
    return value
