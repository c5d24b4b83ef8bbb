"""A test host: starts a real worker process and talks to it over a real socket."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any, Callable

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from reeve_worker import messages, strictjson  # noqa: E402

SESSION = "s-1"
GENERATION = "g-1"
PATIENCE = 30.0  # seconds until a silent worker fails its test
FLAGS = ["-I", "-S", "-E", "-B", "-X", "utf8"]


class Gone(Exception):
    """The worker closed the connection."""


class Result:
    """What one cell sent, in order."""

    def __init__(self, completed: dict[str, Any], frames: list[dict[str, Any]]) -> None:
        self.frames = frames
        self.raw = completed["result"]
        self.kind = self.raw["kind"]
        self.status = self.raw.get("status")
        self.error = self.raw.get("error")
        self.dropped = self.raw.get("truncated_bytes")
        self.live = [f for f in frames if f["kind"] == "output"]
        self.names: Any = next((f for f in frames if f["kind"] == "names"), None)
        self.artifacts = [f for f in frames if f["kind"] == "artifact"]

    @property
    def records(self) -> list[tuple[str, str]]:
        """Live chunks and completed records merged as the host does it."""
        merged: list[tuple[str, str]] = []
        pieces = sorted(self.live, key=lambda f: int(f["seq"])) + self.raw.get("output", [])
        for piece in pieces:
            if merged and merged[-1][0] == piece["stream"] != "result":
                merged[-1] = (piece["stream"], merged[-1][1] + piece["text"])
            else:
                merged.append((piece["stream"], piece["text"]))
        return merged

    def text(self, stream: str) -> str:
        """All text of one stream."""
        return "".join(t for s, t in self.records if s == stream)

    @property
    def value(self) -> str | None:
        """The result record."""
        return next((t for s, t in self.records if s == "result"), None)


class Host:
    """One worker and the connection to it."""

    def __init__(self, *extra: str, python: str = sys.executable, env: dict[str, str] | None = None) -> None:
        self.dir = tempfile.mkdtemp(prefix="reeve-test-")
        self.answer: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda request: None
        self.late: list[dict[str, Any]] = []
        self._ids = 0
        self._buffer = b""
        token = secrets.token_hex(32)
        listener = socket.socket(socket.AF_UNIX)
        path = os.path.join(self.dir, "s")
        listener.bind(path)
        listener.listen(1)
        reading, writing = os.pipe()
        os.write(writing, token.encode())
        os.close(writing)
        self.raw_out = open(os.path.join(self.dir, "fd1"), "w+b")
        self.raw_err = open(os.path.join(self.dir, "fd2"), "w+b")
        argv = [python, *FLAGS, os.path.join(ROOT, "reeve_boot.py"), "--socket", path]
        argv += ["--token-fd", str(reading), "--session", SESSION, "--generation", GENERATION]
        argv += ["--dir", self.dir, *extra]
        self.process = subprocess.Popen(
            argv,
            pass_fds=[reading],
            stdin=subprocess.DEVNULL,
            stdout=self.raw_out,
            stderr=self.raw_err,
            cwd=self.dir,
            env=env,
            start_new_session=True,
        )
        os.close(reading)
        try:
            self.socket = self._accept(listener)
        except AssertionError:
            self.socket = socket.socket()
            self.close()
            raise
        self.socket.settimeout(PATIENCE)
        self.hello = self.receive()
        if self.hello["kind"] != "hello" or self.hello["token"] != token:
            raise AssertionError(f"no valid hello: {self.hello}")

    def _accept(self, listener: socket.socket) -> socket.socket:
        listener.settimeout(0.1)
        deadline = time.monotonic() + PATIENCE
        with listener:
            while True:
                try:
                    return listener.accept()[0]
                except TimeoutError:
                    if self.process.poll() is not None or time.monotonic() > deadline:
                        raise AssertionError(f"worker did not connect: {self.raw()[1]}") from None

    def receive(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """Return the next message, checked by the strict rules."""
        self.socket.settimeout(timeout)
        while True:
            if len(self._buffer) >= 4:
                size = int.from_bytes(self._buffer[:4], "big")
                if len(self._buffer) >= 4 + size:
                    frame = self._buffer[4 : 4 + size]
                    self._buffer = self._buffer[4 + size :]
                    return messages.check_envelope(strictjson.decode(frame), SESSION, GENERATION)
            chunk = self.socket.recv(1 << 20)
            if not chunk:
                raise Gone
            self._buffer += chunk

    def send(self, message: dict[str, Any]) -> None:
        """Send one message to the worker."""
        envelope = {"version": 1, "session_id": SESSION, "generation": GENERATION, "message": message}
        self.send_raw(strictjson.encode(envelope).encode())

    def send_raw(self, payload: bytes) -> None:
        """Send one frame whatever it holds."""
        self.socket.sendall(len(payload).to_bytes(4, "big") + payload)

    def start(self, code: str) -> str:
        """Send a cell without waiting for it; return its id."""
        self._ids += 1
        cell = f"e-{self._ids}"
        self.send({"kind": "execute", "id": cell, "code": code})
        return cell

    def finish(self, cell: str, timeout: float = PATIENCE) -> Result:
        """Wait for a cell to complete, answering its host requests."""
        frames: list[dict[str, Any]] = []
        while True:
            message = self.receive(timeout)
            if message.get("id") != cell and message["kind"] in ("output", "completed"):
                self.late.append(message)
                continue
            if message["kind"] == "completed":
                return Result(message, frames)
            frames.append(message)
            if message["kind"] == "host_request":
                self.reply(message)

    def reply(self, message: dict[str, Any]) -> None:
        """Answer a host request as self.answer says; None leaves it unanswered."""
        result = self.answer(message)
        if result is not None:
            self.send(
                {
                    "kind": "host_reply",
                    "id": message["id"],
                    "execution_id": message["execution_id"],
                    "result": result,
                }
            )

    def run(self, code: str, timeout: float = PATIENCE) -> Result:
        """Run one cell to its completion."""
        return self.finish(self.start(code), timeout)

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first message for which wanted is true; drop the others."""
        while True:
            message = self.receive()
            if wanted(message):
                return message

    def interrupt(self, cell: str) -> None:
        """Send an interrupt frame."""
        self.send({"kind": "interrupt", "id": cell})

    def raw(self) -> tuple[str, str]:
        """What the process wrote to its descriptors 1 and 2 so far."""
        texts = []
        for name in ("fd1", "fd2"):
            with open(os.path.join(self.dir, name), "rb") as file:
                texts.append(file.read().decode("utf-8", "replace"))
        return texts[0], texts[1]

    def close(self) -> None:
        """End the worker and everything in its process group."""
        self.socket.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.raw_out.close()
        self.raw_err.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class WorkerTest(unittest.TestCase):
    """A test with a worker of its own, self.host."""

    def setUp(self) -> None:
        self.host = Host()
        self.addCleanup(self.host.close)

    def ok(self, code: str) -> Result:
        """Run a cell that must end ok."""
        result = self.host.run(code)
        self.assertEqual(result.status, "ok", result.error)
        return result


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Poll for an effect outside of the worker's frames; fail after PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"gave up waiting for {what}")
        time.sleep(0.01)
