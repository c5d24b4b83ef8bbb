"""Strict JSON, decoded from and encoded to UTF-8 bytes (CP-005, CP-007).

The C scanner behind the standard json package does the work. It is reached
directly, because importing json itself costs half of a worker's start. What it
lets through and the protocol refuses is checked around it. Every bad input gives
one Fault; a good one is decoded in time and memory linear in its size.
"""

from __future__ import annotations

import _json

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 96  # containers inside each other, the envelope being the first
MAX_DIGITS = 4_300  # of one number; also the interpreter's own limit for int()
_DOUBLE_DIGITS = 308  # an integer this short is always inside a double's range
_INFINITY = float("inf")
_SPACE = " \t\n\r"


class Fault(ValueError):
    """A frame that breaks the protocol; the connection ends with it.

    code is "limit_exceeded" when a bound was passed, else "invalid_request".
    """

    def __init__(self, text: str, code: str = "invalid_request") -> None:
        super().__init__(text)
        self.code = code


OVER = "limit_exceeded"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Fault(f"duplicate member {name[:80]!r}")
            seen.add(name)
    return made


def _count_digits(literal: str) -> None:
    if len(literal) > MAX_DIGITS and sum(map(str.isdigit, literal)) > MAX_DIGITS:
        raise Fault(f"number of more than {MAX_DIGITS} digits", OVER)


def _integer(literal: str) -> int:
    _count_digits(literal)
    if len(literal) > _DOUBLE_DIGITS and abs(float(literal)) == _INFINITY:
        raise Fault("number outside the range of a double")
    return int(literal)


def _real(literal: str) -> float:
    _count_digits(literal)
    value = float(literal)
    if abs(value) == _INFINITY:
        raise Fault("number outside the range of a double")
    return value


def _constant(literal: str) -> Any:
    raise Fault(f"{literal} is no JSON value")


class _Rules:
    """What the C scanner reads its settings from."""

    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_object)
    parse_float = staticmethod(_real)
    parse_int = staticmethod(_integer)
    parse_constant = staticmethod(_constant)
    memo: dict[str, str] = {}


_rules: Any = _Rules()
_scan = _json.make_scanner(_rules)


def _check_depth(text: str) -> None:
    """Refuse nesting beyond MAX_DEPTH without recursing into it."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    plain = text.replace("\\\\", "").replace('\\"', "")
    for piece in plain.split('"')[::2]:
        for char in piece:
            if char in "[{":
                depth += 1
                if depth > MAX_DEPTH:
                    # Only an object is an envelope: anything else is wrong from its start.
                    code = OVER if text.lstrip(_SPACE)[:1] == "{" else "invalid_request"
                    raise Fault(f"nesting deeper than {MAX_DEPTH}", code)
            elif char in "]}":
                depth -= 1


def _check_surrogates(text: str, value: Any) -> None:
    """Refuse an escape that makes half a surrogate pair, in names and in strings."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError:
                raise Fault("lone surrogate escape") from None
        elif isinstance(item, dict):
            todo.extend(item)
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)


def decode(data: bytes) -> Any:
    """Return the one JSON value that data holds, or raise Fault."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as bad:
        raise Fault(f"not UTF-8 at byte {bad.start}") from None
    _check_depth(text)
    start = 0
    while text[start : start + 1] in _SPACE and start < len(text):
        start += 1
    try:
        value, end = _scan(text, start)
    except StopIteration as stop:
        raise Fault(f"no JSON value at character {stop.value}") from None
    except Fault:
        raise
    except (ValueError, RecursionError) as bad:
        raise Fault(f"not JSON: {bad}") from None
    if text[end:].strip(_SPACE):
        raise Fault(f"something after the value, at character {end}")
    _check_surrogates(text, value)
    return value


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is no JSON type")


_codec: Any = _json
_encode = _codec.make_encoder(None, _refuse, _codec.encode_basestring, None, ":", ",", False, False, False)


def encode(value: Any) -> str:
    """Return value as compact JSON with non-ASCII left as it is.

    The caller has checked free-form values (check): the C encoder would turn a
    member name that is no string into one.
    """
    return "".join(_encode(value, 0))


def check(value: Any, field: str, depth: int = 64) -> None:
    """Raise TypeError or ValueError, naming field, unless value survives encoding.

    depth is how many containers may still be opened (CP-005 leaves 64 to payloads).
    """
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{field}: holds a lone surrogate") from None
    elif isinstance(value, int):
        if abs(value) > 10**_DOUBLE_DIGITS:
            raise ValueError(f"{field}: integer outside the range of a double")
    elif isinstance(value, float):
        if value != value or abs(value) == _INFINITY:
            raise ValueError(f"{field}: {value} is no JSON number")
    elif isinstance(value, (dict, list, tuple)):
        if depth == 0:
            raise ValueError(f"{field}: nested too deep, or inside itself")
        if isinstance(value, dict):
            for name, item in value.items():
                if not isinstance(name, str):
                    raise TypeError(f"{field}: member name {name!r:.80} is no string")
                check(name, field, depth - 1)
                check(item, f"{field}.{name:.80}", depth - 1)
        else:
            for index, item in enumerate(value):
                check(item, f"{field}[{index}]", depth - 1)
    else:
        raise TypeError(f"{field}: {type(value).__name__} is no JSON type")
