"""Sessions beside this one: open them, send them requests, answer theirs."""

from typing import Any, Literal, Sequence

from reeve_worker.requests import call

Mode = Literal["independent", "fork"]


async def open(mode: Mode = "independent", evidence: Sequence[str] = ()) -> dict[str, Any]:
    """Start a session beside this one; return what get returns.

    mode: "independent" starts empty, "fork" from this session's transcript.
    evidence: at most 64 references put into its first input.
    """
    value: dict[str, Any] = await call("peer.open", mode=mode, evidence=[*evidence])
    return value


async def send(peer_id: str, request_id: str, content: str, evidence: Sequence[str] = ()) -> dict[str, Any]:
    """Send a request to a peer; return request_id, peer_id, state, event_id, queued_at_ms.

    request_id: chosen by the caller and unique in this session; sending it again does
    nothing twice. content: 1 to 65,536 bytes. evidence: at most 64 references.
    """
    value: dict[str, Any] = await call(
        "peer.send", peer_id=peer_id, request_id=request_id, content=content, evidence=[*evidence]
    )
    return value


async def message(peer_id: str, request_id: str, content: str, evidence: Sequence[str] = ()) -> dict[str, Any]:
    """The same as send, under its other name."""
    value: dict[str, Any] = await call(
        "peer.message", peer_id=peer_id, request_id=request_id, content=content, evidence=[*evidence]
    )
    return value


async def result(request_id: str, wait_ms: int = 0) -> dict[str, Any]:
    """Return request_id, peer_id, state, result, error and updated_at_ms of a request.

    wait_ms: 0 to 60,000, how long to wait for it to end.
    """
    value: dict[str, Any] = await call("peer.result", request_id=request_id, wait_ms=wait_ms)
    return value


async def submit_result(request_id: str, result: Any) -> dict[str, Any]:
    """Answer a request made to this session, once; return request_id, state, digest, event_id.

    result: any JSON value of at most 262,144 bytes.
    """
    value: dict[str, Any] = await call("peer.submit_result", request_id=request_id, result=result)
    return value


async def cancel(request_id: str) -> dict[str, Any]:
    """Cancel a request; return request_id, state, changed."""
    value: dict[str, Any] = await call("peer.cancel", request_id=request_id)
    return value


async def get(peer_id: str) -> dict[str, Any]:
    """Return one peer."""
    value: dict[str, Any] = await call("peer.get", peer_id=peer_id)
    return value


async def list() -> dict[str, Any]:
    """Return peers, and incoming [{request_id, from_session, state}]."""
    value: dict[str, Any] = await call("peer.list")
    return value


async def stop(peer_id: str, drain: bool = True) -> dict[str, Any]:
    """Stop a peer; return peer_id, state ("draining" or "stopped"), cancelled.

    drain: finish first what is queued.
    """
    value: dict[str, Any] = await call("peer.stop", peer_id=peer_id, drain=drain)
    return value
