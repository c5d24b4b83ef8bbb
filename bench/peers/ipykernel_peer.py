"""Measures ipykernel as reeve is measured: start to ready, `1+1`, memory.

Prints one JSON object. Run by the peers command, on the interpreter that the
distribution's python3-ipykernel is installed for.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import ipykernel
from jupyter_client.manager import KernelManager

STARTS, WARMUP, CELLS = (int(a) for a in sys.argv[1:4])


def quantile(values: list[float], q: float) -> float:
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def rss_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise RuntimeError("no VmRSS")


def start():
    began = time.perf_counter()
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    return manager, client, time.perf_counter() - began


def execute(client) -> None:
    """One request until both its reply and its idle status are in, as a front end waits."""
    msg_id = client.execute("1+1")
    while client.get_shell_msg(timeout=30)["parent_header"].get("msg_id") != msg_id:
        pass
    while True:
        message = client.get_iopub_msg(timeout=30)
        if (
            message["parent_header"].get("msg_id") == msg_id
            and message["msg_type"] == "status"
            and message["content"]["execution_state"] == "idle"
        ):
            return


def main() -> None:
    starts = []
    for number in range(STARTS):
        manager, client, seconds = start()
        starts.append(seconds)
        if number < STARTS - 1:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    rss = rss_kib(manager.provisioner.process.pid)
    for _ in range(WARMUP):
        execute(client)
    times = []
    for _ in range(CELLS):
        began = time.perf_counter()
        execute(client)
        times.append(time.perf_counter() - began)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    json.dump(
        {
            "version": ipykernel.__version__,
            "python": sys.version.split()[0],
            "ready_ms": statistics.median(starts) * 1e3,
            "p50_us": statistics.median(times) * 1e6,
            "p99_us": quantile(times, 0.99) * 1e6,
            "rss_kib": rss,
        },
        sys.stdout,
    )
    print()


main()
