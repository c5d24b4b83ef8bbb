"""The skills of this generation.

`import reeve.skills.<id>` (with - written as _) gives a module whose documentation is
the skill's body, for every skill this generation started with. The functions ask the
host, which also knows what was written since.
"""

from typing import Any

from reeve_worker.requests import call


async def index() -> dict[str, Any]:
    """Return revision, ids, pending (offered from the next generation on) and refused
    [{id, root, reason}]."""
    value: dict[str, Any] = await call("skills.index")
    return value


async def load(id: str) -> dict[str, Any]:
    """Return id, root, digest and body of one skill; a body that changed since it was
    indexed is refused."""
    value: dict[str, Any] = await call("skills.load", id=id)
    return value
