"""Start of a worker: flags, token, connection, greeting."""

from __future__ import annotations

import _socket
import _thread
import os
import sys

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from reeve_worker.runloop import Worker

EXIT_USAGE = 64
EXIT_SKILLS = 66
EXIT_CONNECT = 69
_FLAGS = ("--socket", "--token-fd", "--session", "--generation", "--role", "--dir", "--skills", "--verbs")


def _flags(argv: list[str]) -> dict[str, str]:
    flags = {"--role": "workbench", "--skills": "", "--verbs": ""}
    if len(argv) % 2:
        _fail(EXIT_USAGE, f"flag {argv[-1]!r} has no value")
    for name, value in zip(argv[::2], argv[1::2]):
        if name not in _FLAGS:
            _fail(EXIT_USAGE, f"unknown flag {name!r}")
        flags[name] = value
    for name in _FLAGS:
        if name not in flags:
            _fail(EXIT_USAGE, f"flag {name} is missing")
    if flags["--role"] != "workbench":
        _fail(EXIT_USAGE, f"role {flags['--role']!r}: only workbench is known")
    return flags


def _fail(status: int, why: str) -> None:
    os.write(2, f"reeve worker: {why}\n".encode())
    os._exit(status)


def _token(descriptor: int) -> str:
    """Read the hex token and close its pipe, so that no child inherits it (CP-002)."""
    token = b""
    while chunk := os.read(descriptor, 4096):
        token += chunk
    os.close(descriptor)
    return token.decode("ascii").strip()


def _load_skills(path: str, worker: Worker) -> str | None:
    """Read the skill set before connecting, so that the file need not outlive the greeting."""
    from reeve_worker.strictjson import decode

    try:
        with open(path, "rb") as file:
            payload = decode(file.read())
        worker.finder.offer_skills({skill["id"]: skill["body"] for skill in payload["skills"]})
        revision: str = payload["revision"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        _fail(EXIT_SKILLS, f"load skills: {error!r}")
        return None
    return revision


def main(argv: list[str]) -> None:
    """Connect, greet and serve; never returns."""
    flags = _flags(argv)
    token = _token(int(flags["--token-fd"]))

    from reeve_worker import requests
    from reeve_worker.channel import Channel
    from reeve_worker.reader import Reader
    from reeve_worker.runloop import Worker

    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    channel = Channel(sock, flags["--session"], flags["--generation"])
    worker = Worker(channel, flags["--dir"])
    worker.prepare()
    requests.catalogue = flags["--verbs"]
    skills = _load_skills(flags["--skills"], worker) if flags["--skills"] else None
    try:
        sock.connect(flags["--socket"])
    except OSError as error:
        _fail(EXIT_CONNECT, f"connect: {error}")
    hello: dict[str, object] = {
        "kind": "hello",
        "token": token,
        "role": "workbench",
        "revision": None,
        "slots": [],
        "skills": skills,
    }
    channel.send(hello)
    _thread.start_new_thread(Reader(worker).run, ())
    sys.modules.pop("reeve_worker.main", None)
    worker.serve()
