"""The closed set of messages, as tables of members and their rules (CP-006).

Both directions are here, so that a test host can check what a worker sends with
the same rules that a worker applies to its host. Free-form values (input, request,
value) are held to the codec's rules only.
"""

from __future__ import annotations

from reeve_worker.strictjson import OVER, Fault

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, Callable

VERSION = 1
MAX_FRAME = 1 << 20
MAX_CODE = 262_144
MAX_OUTPUT = 65_536
MAX_RECORDS = 256
MAX_ERROR = 65_536
MAX_REQUESTS = 128
MAX_NAMES = 4_096
MAX_PART = 512 << 10
MAX_ARTIFACT = 8 << 20
MAX_LATE = 8 << 10
_MAX_INTEGER = 2**53 - 1
SLOTS = ["attention.plan", "delivery.review"]

_IDENTIFIER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_HEX = frozenset("0123456789abcdef")
_MIME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.+-/")

if TYPE_CHECKING:
    Rule = Callable[[Any], str]  # "" or what is wrong


class Over(str):
    """What is wrong when a bound was passed."""


def identifier(value: Any) -> str:
    """CP-006: 1..128 of a small alphabet."""
    if isinstance(value, str) and 0 < len(value) <= 128 and _IDENTIFIER.issuperset(value):
        return ""
    return "an identifier is due"


def _text(limit: int) -> Rule:
    def rule(value: Any) -> str:
        if not isinstance(value, str):
            return "a string is due"
        # Four bytes at most encode a character, so most texts need no encoding here.
        if len(value) * 4 > limit and len(value.encode()) > limit:
            return Over(f"{len(value.encode())} bytes are over the limit of {limit}")
        return ""

    return rule


def _one_of(*allowed: str) -> Rule:
    return lambda value: "" if isinstance(value, str) and value in allowed else f"one of {allowed} is due"


def _digest(value: Any) -> str:
    good = isinstance(value, str) and len(value) == 64 and _HEX.issuperset(value)
    return "" if good else "64 lower-case hex digits are due"


def _digest_or_null(value: Any) -> str:
    return "" if value is None else _digest(value)


def _integer(value: Any) -> str:
    if type(value) is int and 0 <= value <= _MAX_INTEGER:
        return ""
    return "an integer within 0 and 2**53-1 is due"


def _boolean(value: Any) -> str:
    return "" if isinstance(value, bool) else "a boolean is due"


def _names(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(n, str) and n for n in value):
        return ""
    return "a list of non-empty strings is due"


def _slots(value: Any) -> str:
    return "" if value == [] or value == SLOTS else "no slots or all of them are due"


def _mime(value: Any) -> str:
    good = isinstance(value, str) and 3 <= len(value) <= 127 and value.count("/") == 1
    if good and _MIME.issuperset(value) and value.strip("/") == value:
        return ""
    return "a lower-case media type is due"


def _base64(value: Any) -> str:
    import binascii

    if not isinstance(value, str):
        return "base64 text is due"
    try:
        data = binascii.a2b_base64(value.encode("ascii"), strict_mode=True)
    except ValueError:
        return "base64 text is due"
    if binascii.b2a_base64(data, newline=False).decode() != value:
        return "base64 text without loose bits is due"
    size = len(data)
    return "" if size <= MAX_PART else Over(f"{size} bytes are over the limit of {MAX_PART}")


def _anything(value: Any) -> str:
    return ""


def _request(value: Any) -> str:
    return "" if isinstance(value, dict) else "an object is due"


def _reply(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "ok":
        return _members(value, {"kind": _anything, "value": _anything})
    if kind == "error":
        return _members(value, {"kind": _anything, "code": identifier, "message": _text(MAX_ERROR)})
    return "an ok or an error is due"


def _output(value: Any) -> str:
    if not isinstance(value, list):
        return "a list is due"
    if len(value) > MAX_RECORDS:
        return Over(f"{len(value)} records are over the limit of {MAX_RECORDS}")
    total = 0
    for record in value:
        wrong = "an object is due"
        if isinstance(record, dict):
            wrong = _members(record, _RECORD)
        if wrong:
            return wrong
        total += len(record["text"].encode())
    return "" if total <= MAX_OUTPUT else Over(f"{total} bytes are over the limit of {MAX_OUTPUT}")


def _error(value: Any) -> str:
    return "" if value is None else _text(MAX_ERROR)(value)


def _result(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "cell":
        wrong = _members(value, _CELL)
        if wrong:
            return wrong
        if value["error"] is not None and value["status"] in ("ok", "yielded"):
            return f"error: null is due for {value['status']}"
        if value["error"] is None and value["status"] == "error":
            return "error: a text is due"
        return ""
    if kind == "hook":
        return _members(value, {"kind": _anything, "value": _anything})
    if kind == "failed":
        return _members(value, {"kind": _anything, "error": _text(MAX_ERROR)})
    return "a cell, a hook or a failed result is due"


def _members(value: dict[str, Any], rules: dict[str, Rule]) -> str:
    """Say what is wrong with an object that must have exactly the members of rules."""
    if value.keys() != rules.keys():
        for name in value:
            if name not in rules:
                return f"unknown member {name[:80]!r}"
        return f"member {min(rules.keys() - value.keys())!r} is missing"
    for name, rule in rules.items():
        wrong = rule(value[name])
        if wrong:
            return type(wrong)(f"{name}: {wrong}")
    return ""


_RECORD: dict[str, Rule] = {
    "stream": _one_of("stdout", "stderr", "result"),
    "text": _text(MAX_OUTPUT),
}
_CELL: dict[str, Rule] = {
    "kind": _anything,
    "status": _one_of("ok", "error", "yielded", "interrupted"),
    "output": _output,
    "truncated_bytes": _integer,
    "error": _error,
}
KINDS: dict[str, dict[str, Rule]] = {
    "hello": {
        "kind": _anything,
        "token": _digest,
        "role": _one_of("workbench", "hooks"),
        "revision": _digest_or_null,
        "slots": _slots,
        "skills": _digest_or_null,
    },
    "execute": {"kind": _anything, "id": identifier, "code": _text(MAX_CODE)},
    "invoke": {"kind": _anything, "id": identifier, "slot": _one_of(*SLOTS), "input": _anything},
    "host_request": {"kind": _anything, "id": identifier, "execution_id": identifier, "request": _request},
    "host_reply": {"kind": _anything, "id": identifier, "execution_id": identifier, "result": _reply},
    "completed": {"kind": _anything, "id": identifier, "result": _result},
    "interrupt": {"kind": _anything, "id": identifier},
    "shutdown": {"kind": _anything},
    "output": {
        "kind": _anything,
        "id": identifier,
        "stream": _one_of("stdout", "stderr"),
        "text": _text(MAX_OUTPUT),
        "seq": _integer,
    },
    "names": {"kind": _anything, "id": identifier, "added": _names, "removed": _names},
    "artifact": {
        "kind": _anything,
        "id": identifier,
        "artifact_id": identifier,
        "mime": _mime,
        "size": _integer,
        "sha256": _digest,
        "index": _integer,
        "last": _boolean,
        "data": _base64,
    },
}


def _together(message: dict[str, Any]) -> str:
    """Rules about several members of one message."""
    kind = message["kind"]
    if kind == "hello":
        hooks = message["role"] == "hooks"
        if hooks != (message["revision"] is not None) or hooks != (message["slots"] == SLOTS):
            return "revision and slots belong to the role of hooks, and both to it"
        if hooks and message["skills"] is not None:
            return "skills: a hook worker sends null"
    elif kind == "names" and len(message["added"]) + len(message["removed"]) > MAX_NAMES:
        return Over(f"more than {MAX_NAMES} names")
    elif kind == "artifact":
        if message["size"] > MAX_ARTIFACT:
            return Over(f"size: over the limit of {MAX_ARTIFACT}")
        if len(message["data"]) // 4 * 3 - message["data"].count("=") > message["size"]:
            return "data: a part larger than its artifact"
    return ""


def check_message(message: Any) -> str:
    """Return "" for a well-formed message, else what is wrong with it."""
    if not isinstance(message, dict):
        return "message: an object is due"
    kind = message.get("kind")
    rules = KINDS.get(kind) if isinstance(kind, str) else None
    if rules is None:
        return f"message.kind: {kind!r:.80} is no kind of message"
    wrong = _members(message, rules) or _together(message)
    return type(wrong)(f"message.{wrong}") if wrong else ""


def check_envelope(value: Any, session: str = "", generation: str = "") -> dict[str, Any]:
    """Return the message inside value, or raise Fault.

    session and generation, unless empty, are those of this connection.
    """
    if not isinstance(value, dict):
        raise Fault("envelope: an object is due")
    wrong = _members(value, _ENVELOPE)
    if wrong:
        raise _fault(type(wrong)(f"envelope.{wrong}"))
    if session and value["session_id"] != session or generation and value["generation"] != generation:
        raise Fault("envelope: another session or generation than this connection's")
    wrong = check_message(value["message"])
    if wrong:
        raise _fault(wrong)
    message: dict[str, Any] = value["message"]
    return message


def _fault(wrong: str) -> Fault:
    return Fault(wrong, OVER if isinstance(wrong, Over) else "invalid_request")


def _version(value: Any) -> str:
    return "" if type(value) is int and value == VERSION else f"version {VERSION} is due"


_ENVELOPE: dict[str, Rule] = {
    "version": _version,
    "session_id": identifier,
    "generation": identifier,
    "message": _anything,
}
