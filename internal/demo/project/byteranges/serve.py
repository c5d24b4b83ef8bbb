"""Serving of ranges."""

from byteranges.parse import parse


def body_of(header: str, body: bytes) -> list[bytes]:
    """Give the bytes that each range of the header asks for."""
    return [body[start : end + 1] for start, end in parse(header, len(body))]
