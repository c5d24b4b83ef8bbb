"""The strict decoder, held to the vectors that the Go decoder is held to."""

import ast
import base64
import glob
import json
import os
import random
import socket
import threading
import tracemalloc
import unittest
from typing import Any, Iterator

from tests.support import ROOT
from reeve_worker.channel import Channel
from reeve_worker.messages import check_envelope
from reeve_worker.strictjson import Fault, check, decode, encode

VECTORS = os.environ.get("REEVE_WIRE_VECTORS") or os.path.join(ROOT, "..", "vectors", "wire")


def cases() -> Iterator[dict[str, Any]]:
    """All cases of all files."""
    for path in sorted(glob.glob(os.path.join(VECTORS, "*.jsonl"))):
        with open(path, encoding="ascii") as file:
            for line in file:
                yield json.loads(line)


def stream(case: dict[str, Any]) -> bytes:
    """The bytes a socket would carry."""
    if "frame_hex" in case:
        return bytes.fromhex(case["frame_hex"])
    if "payload_b64" in case:
        payload = base64.b64decode(case["payload_b64"])
    elif "payload" in case:
        payload = case["payload"].encode()
    else:
        payload = "".join(text * times for text, times in case["generate"]["parts"]).encode()
    return len(payload).to_bytes(4, "big") + payload


def receive(data: bytes) -> dict[str, Any]:
    """Feed data to a channel over a real socket; return the envelope it accepts."""
    ours, theirs = socket.socketpair()
    feeder = threading.Thread(target=feed, args=(theirs, data))
    feeder.start()
    try:
        message = Channel(ours, "", "").receive()
    finally:
        ours.close()
        feeder.join()
    assert message is not None
    return message


def feed(sock: socket.socket, data: bytes) -> None:
    """Send data, as far as the other side still listens, and close."""
    with sock:
        try:
            sock.sendall(data)
        except OSError:
            pass


class Vectors(unittest.TestCase):
    """Every vector, both directions."""

    def test_vectors(self) -> None:
        """Each case is accepted or refused as the vectors say, with their code. [CP-005 CP-006 CP-009 CP-011]"""
        count = 0
        for case in cases():
            with self.subTest(case["id"]):
                count += 1
                expect = case["expect"]
                try:
                    message = receive(stream(case))
                except Fault as fault:
                    self.assertFalse(expect["ok"], str(fault))
                    self.assertEqual(fault.code, expect["code"], str(fault))
                    continue
                self.assertTrue(expect["ok"], "accepted")
                self.assertEqual(message["kind"], expect["kind"])
                if "canonical" in expect:
                    canonical = decode(expect["canonical"].encode())
                    self.assertEqual(message, canonical["message"])
                    self.assertEqual(decode(encode(canonical).encode()), canonical)
        self.assertGreater(count, 300)

    def test_encoding_keeps_non_ascii_and_escapes_no_html(self) -> None:
        """What we send has no needless escape. [CP-007]"""
        self.assertEqual(encode({"a": "é<&>\u2028\"\\\n"}), '{"a":"é<&>\u2028\\"\\\\\\n"}')

    def test_check_refuses_what_json_has_not(self) -> None:
        """A payload that would not survive is refused by name before it is sent. [CP-007 CP-040]"""
        loop: list[Any] = []
        loop.append(loop)
        for value in (float("nan"), float("inf"), 10**400, {1: 2}, {"a": object()}, "\ud83d", {"\ud83d": 1}, loop):
            with self.subTest(type(value)), self.assertRaises((TypeError, ValueError)) as caught:
                check(value, "payload")
            self.assertTrue(str(caught.exception).startswith("payload"), caught.exception)
        check({"a": [1, 2.5, None, True, ("x",)]}, "payload")

    def test_mutated_frames_end_in_one_fault_or_a_message(self) -> None:
        """Damaged vectors never end in anything else than Fault. [CP-011]"""
        pick = random.Random(20260930)
        seeds = [stream(case)[4:] for case in cases() if "generate" not in case]
        for _ in range(3000):
            data = bytearray(pick.choice(seeds))
            for _ in range(pick.randint(1, 4)):
                at = pick.randrange(len(data) + 1)
                if pick.random() < 0.5:
                    data[at:at] = pick.choice((b"[", b"{", b'"', b"\\", b"\\ud800", b"1e999", b",", b"\x00", b"\xff"))
                else:
                    del data[at : at + pick.randint(1, 8)]
            try:
                check_envelope(decode(bytes(data)))
            except Fault:
                pass

    def test_corpus(self) -> None:
        """The inputs that fuzzing the Go decoder kept end here in one fault or a message too. [CP-011]"""
        kept = glob.glob(os.path.join(ROOT, "..", "wire", "testdata", "fuzz", "*", "*"))
        self.assertTrue(kept)
        for path in kept:
            with self.subTest(os.path.basename(path)), open(path, "rb") as file:
                for raw in file.read().split(b"\n")[1:-1]:
                    line = raw.decode("ascii", "backslashreplace")  # a bytes literal of Go
                    literal = line[line.index("(") + 1 : line.rindex(")")]
                    try:
                        check_envelope(decode(ast.literal_eval("b" + literal)))
                    except Fault:
                        pass

    def test_memory_is_bounded(self) -> None:
        """The largest frames of the worst shapes stay within 64 times their size. [CP-011]"""
        head = b'{"version":1,"session_id":"s","generation":"g","message":{"kind":"host_reply","id":"r","execution_id":"e","result":{"kind":"ok","value":'
        room = (1 << 20) - len(head) - 3
        for name, body in (
            ("objects", b"[" + b"{}," * ((room - 4) // 3) + b"{}]"),
            ("lists", b"[" + b"[]," * ((room - 4) // 3) + b"[]]"),
            ("numbers", b"[" + b"7," * ((room - 3) // 2) + b"7]"),
            ("strings", b"[" + b'"",' * ((room - 4) // 3) + b'""]'),
            ("deep", b"[" * room),
            ("members", b"{" + b",".join(b'"%x":0' % n for n in range(room // 10)) + b"}"),
        ):
            with self.subTest(name):
                data = head + body + b"}}}"
                self.assertLessEqual(len(data), 1 << 20)
                tracemalloc.start()
                try:
                    check_envelope(decode(data))
                except Fault:
                    self.assertEqual(name, "deep")
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                self.assertLess(peak, 64 * len(data))
