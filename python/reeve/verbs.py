"""The verb plane: everything the host can do, under one gate.

    hits = await verbs.workspace.search(pattern="def main") # one verb, its result
    done = await verbs.request('workspace.list() | workspace.read(path=$prev.items[0].path)')

Each verb is a coroutine function with keyword arguments. `dir(verbs)` lists the packs,
`dir(verbs.workspace)` the verbs of one, and `help(verbs.workspace.read)` is the manual of
a verb. Verbs without a pack, such as whoami, stand in verbs.catalogue. A refusal
arrives as VerbError.
"""

from typing import Any, Awaitable, Callable, Sequence

from reeve_worker import requests
from reeve_worker.requests import HostError, call


class VerbError(HostError):
    """A verb failed or was refused.

    code is stable (permission_denied, not_found, conflict, held, ...); disposition says
    whether it took effect: committed, not_committed or unknown, of which only
    not_committed may simply be tried again; next says what to do now, and is empty when
    nobody knows; entry is the whole entry of the result envelope.
    """

    def __init__(self, code: str, message: str, disposition: str, next: str, entry: dict[str, Any]) -> None:
        super().__init__(code, message)
        self.disposition = disposition
        self.next = next
        self.entry = entry

    def __str__(self) -> str:
        text = f"{self.code}: {self.message} ({self.disposition})"
        return f"{text}; {self.next}" if self.next else text

    def __reduce__(self) -> Any:
        return type(self), (self.code, self.message, self.disposition, self.next, self.entry)


VerbError.__module__ = "reeve"


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
    raise VerbError(
        error.get("code") or error.get("kind") or "internal",
        error.get("message") or f"{tool} failed",
        entry.get("domain_disposition") or "unknown",
        error.get("next") or "",
        entry,
    )


_known: dict[str, dict[str, dict[str, Any]]] | None = None


def _catalogue() -> dict[str, dict[str, dict[str, Any]]]:
    """The verbs of the host by pack and name, read once."""
    global _known
    if _known is None:
        found: dict[str, dict[str, dict[str, Any]]] = {}
        if requests.catalogue:
            import json

            with open(requests.catalogue, encoding="utf-8") as file:
                for spec in json.load(file)["verbs"]:
                    found.setdefault(spec["pack"], {})[spec["verb"].rpartition(".")[2]] = spec
        _known = found
    return _known


_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict[str, Any]",
    "array of string": "list[str]",
    "array of object": "list[dict[str, Any]]",
    "array": "list[Any]",
}


def _signature(params: list[dict[str, Any]]) -> Any:
    import inspect  # slow to import, and few cells ask for help

    ordered = sorted(params, key=lambda p: not p["required"])
    return inspect.Signature(
        [
            inspect.Parameter(
                p["name"],
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if p["required"] else ...,
                annotation=_TYPES.get(p["type"], "Any"),
            )
            for p in ordered
        ],
        return_annotation="Any",
    )


def _manual(spec: dict[str, Any]) -> str:
    lines = [spec["description"], "", f"Can touch: {spec['effect']}."]
    if spec["params"]:
        lines.append("")
    for p in spec["params"]:
        lines.append(f"{p['name']} ({p['type']}{'' if p['required'] else ', optional'}): {p['description']}")
    return "\n".join(lines)


class Pack:
    """The verbs of one pack, as coroutine functions with keyword arguments."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        if verb.startswith("__"):
            raise AttributeError(verb)
        spec = _catalogue().get(self._name, {}).get(verb)
        tool: str = spec["verb"] if spec else f"{self._name}.{verb}"

        async def ask(**args: Any) -> Any:
            return await _one(tool, args)

        ask.__name__, ask.__qualname__ = verb, tool
        if spec:
            ask.__doc__ = _manual(spec)
            ask.__signature__ = _signature(spec["params"])  # type: ignore[attr-defined]
        else:
            ask.__doc__ = f"Run the verb {tool}; `await verbs.request('{tool}(help=true)')` is its manual."
        return ask

    def __dir__(self) -> list[str]:
        return sorted(_catalogue().get(self._name, {}))

    def __repr__(self) -> str:
        return f"<pack {self._name}: {', '.join(dir(self))}>"


def __getattr__(name: str) -> Pack:
    if name.startswith("__"):
        raise AttributeError(name)
    return Pack(name)


def __dir__() -> list[str]:
    return sorted({*_catalogue(), "request", "VerbError"})
