"""A worker that behaves as HOSTILE says: the peer a supervisor must survive."""

import json
import os
import socket
import struct
import sys
import time

ARGS = dict(zip(sys.argv[1::2], sys.argv[2::2]))
MODE = os.environ.get("HOSTILE", "")
TOKEN = os.read(int(ARGS["--token-fd"]), 64).decode()


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(ARGS["--socket"])
    return s


def envelope(message, **changes):
    e = {
        "version": 1,
        "session_id": ARGS["--session"],
        "generation": ARGS["--generation"],
        "message": message,
    }
    e.update(changes)
    return json.dumps(e).encode()


def send_raw(s, payload):
    s.sendall(struct.pack(">I", len(payload)) + payload)


def send(s, message, **changes):
    send_raw(s, envelope(message, **changes))


def receive(s):
    header = s.recv(4, socket.MSG_WAITALL)
    if len(header) < 4:
        sys.exit(0)
    body = s.recv(struct.unpack(">I", header)[0], socket.MSG_WAITALL)
    return json.loads(body)["message"]


def hello(**changes):
    h = {
        "kind": "hello",
        "token": TOKEN,
        "role": ARGS["--role"],
        "revision": None,
        "slots": [],
        "skills": None,
    }
    h.update(changes)
    return h


def completed(i, status="ok", text="", error=None):
    records = [{"stream": "result", "text": text}] if text else []
    return {
        "kind": "completed",
        "id": i,
        "result": {
            "kind": "cell",
            "status": status,
            "output": records,
            "truncated_bytes": 0,
            "error": error,
        },
    }


def output(i, text, seq):
    return {"kind": "output", "id": i, "stream": "stdout", "text": text, "seq": seq}


def request(i, execution, method="runtime.inspect"):
    return {
        "kind": "host_request",
        "id": i,
        "execution_id": execution,
        "request": {"method": method},
    }


def stranger():
    """Another process of the same user, which holds the right token."""
    if os.fork() == 0:
        s = connect()
        s.settimeout(10)
        try:
            send(s, hello())
            turned_away = s.recv(1) == b""
        except (BrokenPipeError, ConnectionResetError):
            turned_away = True
        os._exit(0 if turned_away else 1)
    _, status = os.wait()
    if status:
        sys.exit("the stranger was not turned away")


def main():
    if MODE == "silent":
        print("on stdout", flush=True)
        print("on stderr", file=sys.stderr, flush=True)
        time.sleep(600)
    if MODE == "dies":
        print("line before the end", file=sys.stderr, flush=True)
        os._exit(3)
    if MODE == "stranger":
        stranger()
    s = connect()
    if MODE == "old-version":
        send(s, hello(), version=0)
    elif MODE == "wrong-token":
        send(s, hello(token="0" * 64))
    elif MODE == "wrong-role":
        send(s, hello(role="hooks", revision="0" * 64, slots=["attention.plan", "delivery.review"]))
    elif MODE == "wrong-session":
        send(s, hello(), session_id="somebody-else")
    elif MODE == "not-hello":
        send(s, completed("e-1"))
    elif MODE == "garbage":
        s.sendall(os.urandom(4096))
    elif MODE == "hello-in-part":
        s.sendall(struct.pack(">I", 400) + b'{"version":1,')
    elif MODE == "connects-only":
        time.sleep(600)
    else:
        send(s, hello())
    receive_loop(s)


def receive_loop(s):
    while True:
        m = receive(s)
        if m["kind"] == "shutdown":
            if MODE != "deaf":
                sys.exit(0)
        elif m["kind"] == "execute":
            execute(s, m["id"], m["code"])


def execute(s, i, code):
    """code is the name of what to do, maybe with an argument."""
    what, argument = (code.split(None, 1) + [""])[:2]
    if what == "echo":
        send(s, completed(i, text=argument))
    elif what == "garbage":
        s.sendall(b"\x00\x00\x00\x05ab")
        s.sendall(b"\xff\xfe\xfd")
    elif what == "zero-frame":
        s.sendall(b"\x00\x00\x00\x00")
    elif what == "huge-frame":
        s.sendall(b"\x7f\x00\x00\x00")
    elif what == "half-frame":
        s.sendall(b"\x00\x00\x01\x00{")
    elif what == "other-generation":
        send(s, completed(i), generation="g-999")
    elif what == "other-id":
        send(s, completed("e-other"))
    elif what == "yield":
        send(s, completed(i, status="yielded"))
    elif what == "hello-again":
        send(s, hello())
    elif what == "host-message":
        send(s, {"kind": "shutdown"})
    elif what == "closes":
        s.close()
        time.sleep(600)
    elif what == "over-budget":
        for n in range(3):
            send(s, output(i, "x" * 30000, n))
        send(s, completed(i))
    elif what == "seq-gap":
        send(s, output(i, "a", 0))
        send(s, output(i, "b", 2))
    elif what == "late-output":
        send(s, completed(i))
        send(s, output(i, "afterwards", 0))
    elif what == "requests":
        codes = []
        for n in range(int(argument)):
            send(s, request("r-%d" % n, i))
        for n in range(int(argument)):
            r = receive(s)["result"]
            codes.append(r.get("code", r["kind"]))
        send(s, completed(i, text=" ".join(codes)))
    elif what == "request-and-end":
        send(s, request("r-1", i))
        send(s, completed(i))
    elif what == "request-as":
        send(s, request("r-1", argument))
        r = receive(s)["result"]
        send(s, completed(i, text=r.get("code", r["kind"])))
    elif what == "spool":
        spool(i, *argument.split())
        c = completed(i)
        c["result"]["truncated_bytes"] = 1
        send(s, c)
    elif what in ("exec", "exec-then-ignore"):
        names = {}
        exec(argument, names)
        if what == "exec":
            send(s, completed(i, text=str(names.get("answer", ""))))
            return
        send(s, output(i, str(names["answer"]), 0))
        execute(s, i, "ignore")
    elif what == "ignore":
        while True:
            try:
                time.sleep(600)
            except KeyboardInterrupt:
                pass
    elif what == "answer-interrupt":
        while receive(s)["kind"] != "interrupt":
            pass
        send(s, completed(i, status="interrupted", error="interrupted"))
    else:
        send(s, completed(i, status="error", error="unknown " + what))


def spool(i, total, damage="none"):
    """A spool of so many bytes; byte n of the output is n modulo 251."""
    path = os.path.join(ARGS["--dir"], "spool-" + i)
    if damage == "link":
        os.symlink("/etc/passwd", path)
        return
    total, part = int(total), 8 << 20
    pattern = bytes(range(251))
    head = (pattern * (part // 251 + 1))[: min(total, part)]
    ring = bytearray(min(max(total - part, 0), part))
    for at in range(max(part, total - part), total, 65536):
        piece = (pattern * 264)[at % 251 :][: min(65536, total - at)]
        begin = (at - part) % part
        fits = min(len(piece), part - begin)
        ring[begin : begin + fits] = piece[:fits]
        ring[: len(piece) - fits] = piece[fits:]
    claimed = total + 1 if damage == "short" else total
    magic = b"RVSPOOL9" if damage == "magic" else b"RVSPOOL1"
    if damage == "header":
        magic = b"RVS"
    with open(path, "wb") as f:
        f.write(magic + struct.pack(">Q", claimed) + head + ring if damage != "header" else magic)


main()
