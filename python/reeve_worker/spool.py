"""The file that keeps the output of a cell beyond its record.

Layout: 16 bytes of header (the magic, then the bytes of output so far as u64 big
endian), a head region with the first 8 MiB, a ring region with the newest 8 MiB of
the rest. Data is written before the header counts it, so a reader that finds the
file after a kill trusts every byte that the header names.
"""

import os

MAGIC = b"RVSPOOL1"
HEADER = 16
REGION = 8 << 20


class Spool:
    """An open spool file. Its owner calls append and close; the host reads it."""

    def __init__(self, path: str) -> None:
        new = path + ".new"
        self._file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._total = 0
        os.pwrite(self._file, MAGIC + bytes(8), 0)
        os.rename(new, path)  # a reader never meets a file without its header

    def append(self, data: bytes) -> None:
        """Write data after what was written before and count it in the header."""
        rest = memoryview(data)
        at = self._total
        if at < REGION:
            head, rest = rest[: REGION - at], rest[REGION - at :]
            self._write(head, HEADER + at)
            at += len(head)
        if len(rest) > REGION:  # only its last part will be kept
            at += len(rest) - REGION
            rest = rest[-REGION:]
        while rest:
            place = (at - REGION) % REGION
            part, rest = rest[: REGION - place], rest[REGION - place :]
            self._write(part, HEADER + REGION + place)
            at += len(part)
        self._total += len(data)
        os.pwrite(self._file, self._total.to_bytes(8, "big"), 8)

    def _write(self, data: memoryview, at: int) -> None:
        while data:
            done = os.pwrite(self._file, data, at)
            data, at = data[done:], at + done

    def close(self) -> None:
        """Leave the file to its reader."""
        os.close(self._file)
