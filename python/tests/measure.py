"""Prints start time, memory and round trip of a worker. Not a test: run it by hand.

Usage: python3 -m tests.measure [interpreter]
"""

import os
import statistics
import sys
import tempfile
import time
import shutil
import subprocess
from typing import Callable

from tests import support


def _timed(times: int, action: Callable[[], object]) -> list[float]:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return sorted(taken)


def _show(name: str, taken: list[float], unit: float, label: str) -> None:
    middle, low = statistics.median(taken), taken[0]
    print(f"{name:34} min {low * unit:8.1f}  p50 {middle * unit:8.1f} {label}")


def main() -> None:
    """Measure with byte code beside the source, as the host unpacks it."""
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    unpacked = tempfile.mkdtemp()
    for name in ("reeve_boot.py", "reeve_worker", "reeve"):
        source, target = os.path.join(support.ROOT, name), os.path.join(unpacked, name)
        if os.path.isdir(source):
            shutil.copytree(source, target)
        elif os.path.exists(source):
            shutil.copy(source, target)
    subprocess.run([python, "-I", "-S", "-E", "-m", "compileall", "-q", unpacked], check=True)
    support.ROOT = unpacked
    hosts: list[support.Host] = []
    _show("bare interpreter", _timed(20, lambda: subprocess.run([python, "-I", "-S", "-E", "-c", "0"])), 1e3, "ms")
    _show("spawn to hello", _timed(20, lambda: hosts.append(support.Host(python=python))), 1e3, "ms")
    host = hosts.pop()
    for other in hosts:
        other.close()
    with open(f"/proc/{host.process.pid}/status", encoding="ascii") as status:
        print("".join(line for line in status if line.startswith("VmRSS")), end="")
    for name, code in (
        ("empty cell", "pass"),
        ("value", "x = 1 + 1\nx"),
        ("print", "print(x)"),
        ("1000 prints", "for i in range(1000): print(i)"),
        ("await", "import asyncio; await asyncio.sleep(0)"),
        ("value, with a loop", "x"),
    ):
        for _ in range(50):
            host.run(code)
        _show(f"cell: {name}", _timed(2000 if "1000" not in name else 50, lambda: host.run(code)), 1e6, "us")
    host.close()
    shutil.rmtree(unpacked)


if __name__ == "__main__":
    main()
