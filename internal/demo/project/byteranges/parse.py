"""Parsing of a Range header into positions within a body."""


class Unsatisfiable(ValueError):
    """No range of the header lies within the body."""


def parse(header: str, size: int) -> list[tuple[int, int]]:
    """Give the ranges that a body of size bytes can serve, both ends inclusive."""
    unit, equals, specs = header.partition("=")
    if unit.strip().lower() != "bytes" or not equals:
        raise ValueError(f"not a byte range: {header!r}")
    ranges = []
    for spec in specs.split(","):
        first, dash, last = spec.strip().partition("-")
        if not dash or not (first or last):
            raise ValueError(f"not a byte range: {spec.strip()!r}")
        if first:
            start = int(first)
            end = min(int(last), size - 1) if last else size - 1
        else:
            start = size - int(last)
            end = size - 1
        if start <= end:
            ranges.append((start, end))
    if not ranges:
        raise Unsatisfiable(header)
    return ranges
