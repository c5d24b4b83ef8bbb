"""References to what is on record."""

from typing import Any, Sequence

from reeve_worker.requests import call


async def resolve(refs: Sequence[str]) -> list[dict[str, Any]]:
    """Look up 1 to 64 references; return one item for each, in order.

    A reference is event:<n>, effect:<id>, artifact:<sha256> or scope:<id>#<seq>.
    Item: ref, found, kind, digest, at_ms, excerpt (at most 2,048 bytes), cut, and a reason
    (malformed, not_found, not_visible) when it was not found. A bad reference is an item,
    not an error.
    """
    value: dict[str, Any] = await call("evidence.resolve", refs=list(refs))
    items: list[dict[str, Any]] = value["items"]
    return items
