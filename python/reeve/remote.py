"""Workers on other machines, reached over ssh by their configured names."""

from typing import Any

from reeve_worker.requests import call as _ask


async def ensure(target: str) -> dict[str, Any]:
    """Connect to a target of the configuration; return namespace_id and namespace_generation."""
    value: dict[str, Any] = await _ask("remote.ensure", target=target)
    return value


async def call(
    target: str,
    namespace_id: str,
    namespace_generation: str,
    operation_id: str,
    operation: str = "execute",
    payload: Any = None,
) -> dict[str, Any]:
    """Do one operation in a remote namespace; return its outcome.

    operation_id: chosen by the caller; the same one returns the stored outcome.
    A stale generation is refused. A broken link leaves the outcome unknown, which is said
    and never retried.
    """
    value: dict[str, Any] = await _ask(
        "remote.call",
        target=target,
        namespace_id=namespace_id,
        namespace_generation=namespace_generation,
        operation_id=operation_id,
        operation=operation,
        payload={} if payload is None else payload,
    )
    return value


async def cancel(namespace_id: str, namespace_generation: str, operation_id: str) -> dict[str, Any]:
    """Cancel an operation in a remote namespace."""
    value: dict[str, Any] = await _ask(
        "remote.cancel",
        namespace_id=namespace_id,
        namespace_generation=namespace_generation,
        operation_id=operation_id,
    )
    return value


async def close(namespace_id: str, namespace_generation: str) -> dict[str, Any]:
    """End a remote namespace."""
    value: dict[str, Any] = await _ask(
        "remote.close", namespace_id=namespace_id, namespace_generation=namespace_generation
    )
    return value
