"""What a cell can ask of reeve, the host that runs it.

    from reeve import runtime, workspace, verbs
    state = await runtime.inspect()
    done = await workspace.run(["ls", "-l"])

Every function that reaches the host is a coroutine function: `await` it, at the top
of a cell or in code that the cell awaits. A refusal arrives as HostError with a
`.code` from a closed list and a `.message`. A cell may ask its host 128 times, and
only while it runs: a background task that outlives its cell gets `scope_expired`.

Modules: runtime (wait, inspect, instructions), local (send), workspace (info, run),
evidence (resolve), skills (index, load), hooks (list, describe), behavior (activate),
maintenance, orientation, frontier, peer and agents, remote, verbs.
`help(reeve.workspace.run)`, and likewise for each, is the manual.
"""

from reeve_worker.requests import HostError, Yielded

__all__ = [
    "HostError",
    "VerbError",
    "Yielded",
    "agents",
    "behavior",
    "evidence",
    "frontier",
    "hooks",
    "local",
    "maintenance",
    "orientation",
    "peer",
    "remote",
    "runtime",
    "skills",
    "verbs",
    "workspace",
]


def __getattr__(name: str) -> object:
    if name == "VerbError":
        return __import__("reeve.verbs", fromlist=["*"]).VerbError
    if name in __all__:
        return __import__(f"reeve.{name}", fromlist=["*"])
    raise AttributeError(f"module 'reeve' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
