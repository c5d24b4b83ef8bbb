"""The verb plane: everything the host can do, under one gate.

    hits = await verbs.kg.search(query="loop")           # one verb, its result
    done = await verbs.request("kg.search(query=\\"loop\\") | kg.get(id=$prev[0].id)")

`await verbs.request("<verb>(help=true)")` describes a verb and its arguments.
"""

from typing import Any, Awaitable, Callable, Sequence

from reeve_worker.requests import HostError, call


async def request(ops: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Send one batch of operations; return the whole result envelope.

    ops: a text in the request language, or a list of {"tool": ..., "args": {...}}.
    Envelope: results (one entry per operation, in order: ok, tool, and result or error),
    summary {total, succeeded, failed, aborted}, status. One request of the 128 a cell has.
    """
    value: dict[str, Any] = await call("verbs.request", ops=ops if isinstance(ops, str) else [*ops])
    return value


async def _one(tool: str, args: dict[str, Any]) -> Any:
    envelope = await request([{"tool": tool, "args": args}])
    entry = envelope["results"][0]
    if entry.get("ok"):
        return entry.get("result")
    error = entry.get("error") or {}
    code = error.get("code") or error.get("kind") or "internal"
    raise HostError(code, error.get("message") or f"{tool} failed")


class Pack:
    """The verbs of one pack, as coroutine functions with keyword arguments."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        if verb.startswith("__"):
            raise AttributeError(verb)
        tool = f"{self._name}.{verb}"

        async def ask(**args: Any) -> Any:
            return await _one(tool, args)

        ask.__name__, ask.__qualname__ = verb, tool
        ask.__doc__ = f"Run the verb {tool}; `await verbs.request('{tool}(help=true)')` is its manual."
        return ask

    def __repr__(self) -> str:
        return f"<pack {self._name}>"


def __getattr__(name: str) -> Pack:
    if name.startswith("__"):
        raise AttributeError(name)
    return Pack(name)
