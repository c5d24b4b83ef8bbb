"""The decision hooks in force."""

from typing import Any

from reeve_worker.requests import call


async def list() -> dict[str, Any]:
    """Return epoch, revision and hooks [{slot, entrypoint, state, budget_ms, on_failure}]."""
    value: dict[str, Any] = await call("hooks.list")
    return value


async def describe(slot: str) -> dict[str, Any]:
    """Return one hook with its doc, input_schema, result_schema and last call.

    slot: "attention.plan" or "delivery.review".
    """
    value: dict[str, Any] = await call("hooks.describe", slot=slot)
    return value
