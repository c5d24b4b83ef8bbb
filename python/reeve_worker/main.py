"""Start of a worker: flags, token, connection, greeting."""

import _socket
import _thread
import os
import sys

EXIT_USAGE = 64
EXIT_CONNECT = 69
_FLAGS = ("--socket", "--token-fd", "--session", "--generation", "--role", "--dir", "--skills")


def _flags(argv: list[str]) -> dict[str, str]:
    flags = {"--role": "workbench", "--skills": ""}
    if len(argv) % 2:
        _fail(EXIT_USAGE, f"flag {argv[-1]!r} has no value")
    for name, value in zip(argv[::2], argv[1::2]):
        if name not in _FLAGS:
            _fail(EXIT_USAGE, f"unknown flag {name!r}")
        flags[name] = value
    for name in _FLAGS:
        if name not in flags:
            _fail(EXIT_USAGE, f"flag {name} is missing")
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


def main(argv: list[str]) -> None:
    """Connect, greet and serve; never returns."""
    flags = _flags(argv)
    token = _token(int(flags["--token-fd"]))
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.connect(flags["--socket"])
    except OSError as error:
        _fail(EXIT_CONNECT, f"connect: {error}")

    from reeve_worker.channel import Channel
    from reeve_worker.runloop import Worker

    channel = Channel(sock, flags["--session"], flags["--generation"])
    worker = Worker(channel, flags["--dir"])
    worker.prepare()
    hello: dict[str, object] = {
        "kind": "hello",
        "token": token,
        "role": "workbench",
        "revision": None,
        "slots": [],
        "skills": None,
    }
    channel.send(hello)
    _thread.start_new_thread(worker.read, ())
    sys.modules.pop("reeve_worker.main", None)
    worker.serve()
