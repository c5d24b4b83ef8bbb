"""The workspace: what it is, and programs run in it under the host's eye."""

from typing import Any, Mapping, Sequence

from reeve_worker.requests import call


async def info() -> dict[str, Any]:
    """Return root, vcs {kind, head, branch, dirty, changed, untracked}, discipline, scope,
    may {run, write} and limits of the workspace."""
    value: dict[str, Any] = await call("workspace.info")
    return value


async def run(
    argv: Sequence[str],
    *,
    cwd: str = ".",
    env: Mapping[str, str] | None = None,
    timeout_ms: int = 120_000,
    max_output_bytes: int = 750_000,
) -> dict[str, Any]:
    """Run a program without a shell; return how it ended and what it printed.

    argv: the program and its arguments, 1 to 256 of at most 32,768 bytes each.
    cwd: a directory inside the workspace. env: added to a scrubbed base environment.
    timeout_ms: 1 to 3,600,000, after which its whole process tree is ended.
    max_output_bytes: 1 to 1,000,000, for both streams together.

    Result: act_id, exit_code or signal, timed_out, duration_ms, and stdout and stderr, each
    {text, bytes_total, bytes_dropped, artifact}. A program that fails is no exception: look
    at exit_code.
    """
    value: dict[str, Any] = await call(
        "workspace.run",
        argv=list(argv),
        cwd=cwd,
        env=dict(env or {}),
        timeout_ms=timeout_ms,
        max_output_bytes=max_output_bytes,
    )
    return value
