"""The source revision that hooks are loaded from."""

from typing import Any

from reeve_worker.requests import call


async def activate(path: str, expected_epoch: int) -> dict[str, Any]:
    """Make the release at path the behavior in force, if the epoch is still expected_epoch.

    path: absolute, ends in releases/<sha256>, at most 4,096 bytes.
    Result: epoch, revision, previous {epoch, revision}, event_id, activated_at_ms.
    A lost race is stale_epoch, a tree that is not its digest is conflict. The default
    policy denies this to sessions.
    """
    value: dict[str, Any] = await call("behavior.activate", path=path, expected_epoch=expected_epoch)
    return value
