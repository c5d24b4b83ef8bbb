"""What cells print: records, budget, live frames, spool, late output."""

import os
import resource

from tests.support import WorkerTest, wait_for
from reeve_worker.spool import HEADER, MAGIC, REGION

HALF = 32_768


def spooled(path: str) -> tuple[int, bytes, bytes]:
    """Total, head and newest part of a spool file."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == MAGIC
    total = int.from_bytes(data[8:16], "big")
    head = data[HEADER : HEADER + min(total, REGION)]
    ring = data[HEADER + REGION :]
    beyond = total - REGION
    if beyond <= 0:
        return total, head, b""
    if beyond <= REGION:
        return total, head, ring[:beyond]
    at = beyond % REGION
    return total, head, ring[at:] + ring[:at]


class Records(WorkerTest):
    """The record of a cell."""

    def test_streams_in_order(self) -> None:
        """Adjacent writes coalesce, order between streams is kept, the value comes last. [CP-032 CP-141]"""
        result = self.ok("import sys\nprint('a')\nprint('b')\nprint('c', file=sys.stderr)\nprint('d')\n5")
        self.assertEqual(
            result.records, [("stdout", "a\nb\n"), ("stderr", "c\n"), ("stdout", "d\n"), ("result", "5")]
        )

    def test_live(self) -> None:
        """Text is sent while the cell still runs, numbered from 0, and is not repeated. [CP-141]"""
        cell = self.host.start("import time\nprint('one')\ntime.sleep(0.3)\nprint('two')\ninput_wait = 1\ntime.sleep(0.3)")
        first = self.host.until(lambda m: bool(m["kind"] == "output"))
        second = self.host.until(lambda m: bool(m["kind"] == "output"))
        self.assertEqual((first["text"], first["seq"], first["stream"]), ("one\n", 0, "stdout"))
        self.assertEqual((second["text"], second["seq"]), ("two\n", 1))
        self.assertEqual(self.host.finish(cell).raw["output"], [])

    def test_flush_sends_at_once(self) -> None:
        """flush() does not wait for the tick, even if the interpreter then stays in C. [CP-141]"""
        cell = self.host.start("print('now', flush=True)\nsum(range(40_000_000))\n1")
        self.assertEqual(self.host.until(lambda m: bool(m["kind"] == "output"))["text"], "now\n")
        self.assertEqual(self.host.finish(cell).value, "1")

    def test_budget(self) -> None:
        """First half and last half are kept, the rest is counted, the spool has all. [CP-009 CP-141]"""
        result = self.ok("for n in range(20000): print(f'{n:09}')")
        text = "".join(f"{n:09}\n" for n in range(20000))
        self.assertEqual("".join(f["text"] for f in result.live), text[:HALF])
        kept = "".join(r["text"] for r in result.raw["output"])
        self.assertEqual(kept, text[-HALF:])
        self.assertEqual(result.dropped, len(text) - 2 * HALF)
        total, head, _ = spooled(os.path.join(self.host.dir, "spool-e-1"))
        self.assertEqual((total, head.decode()), (len(text), text))

    def test_no_spool_below_the_half(self) -> None:
        """Output that fits the first half is not spooled. [CP-141]"""
        self.ok(f"print('x' * {HALF - 1})")
        self.assertFalse(os.path.exists(os.path.join(self.host.dir, "spool-e-1")))
        result = self.ok(f"print('x' * {HALF})")
        self.assertEqual((len(result.text("stdout")), result.dropped), (HALF + 1, 0))
        self.assertEqual(spooled(os.path.join(self.host.dir, "spool-e-2"))[0], HALF + 1)

    def test_spool_beyond_its_regions(self) -> None:
        """The spool keeps the first and the newest 8 MiB, byte for byte. [CP-141]"""
        self.ok("import os\nline = 'é' + 'x' * 997 + '\\n'\nfor n in range(20000): print(f'{n:08}', line, end='')")
        line = "é" + "x" * 997 + "\n"
        text = "".join(f"{n:08} {line}" for n in range(20000)).encode()
        total, head, newest = spooled(os.path.join(self.host.dir, "spool-e-1"))
        self.assertEqual(total, len(text))
        self.assertTrue(head == text[:REGION] and newest == text[-REGION:])

    def test_spool_survives_a_kill(self) -> None:
        """What was printed is in the spool although the worker was killed. [CP-141]"""
        self.host.start("print('y' * 100_000)\nimport time\ntime.sleep(600)")
        path = os.path.join(self.host.dir, "spool-e-1")
        wait_for(lambda: os.path.exists(path) and spooled(path)[0] > 100_000, "the spool")
        self.host.process.kill()
        self.host.process.wait()
        self.assertEqual(spooled(path)[1], b"y" * 100_000 + b"\n")

    def test_cut_between_characters(self) -> None:
        """The budget never cuts inside a character. [CP-009]"""
        result = self.ok("print('x' + '€' * 60000, end='')\n")
        text = result.text("stdout")
        self.assertNotIn("\ufffd", text)
        self.assertEqual(set(text), {"x", "€"})
        self.assertEqual(len(text.encode()) + result.dropped, 1 + 3 * 60000)

    def test_many_records(self) -> None:
        """Alternating streams stay within the number of records. [CP-009]"""
        code = "import sys\nfor n in range(1000):\n    print(n)\n    print(n, file=sys.stderr)\n'value'"
        result = self.ok(code)
        self.assertLessEqual(len(result.records), 256)
        self.assertEqual(result.records[0], ("stdout", "0\n"))
        self.assertEqual(result.records[-2:], [("stderr", "999\n"), ("result", "'value'")])
        size = sum(len(text) for stream, text in result.records if stream != "result")
        self.assertEqual(size + result.dropped, 2 * sum(len(f"{n}\n") for n in range(1000)))

    def test_big_value_beside_big_output(self) -> None:
        """All records together stay within the budget. [CP-009 CP-035]"""
        result = self.ok("print('x' * 200_000)\n'v' * 200_000")
        self.assertLessEqual(sum(len(t.encode()) for _, t in result.records), 65_536)
        self.assertTrue((result.value or "").startswith("'vvv"))
        self.assertTrue((result.value or "").endswith("vvv'"))

    def test_flood_does_not_grow_the_worker(self) -> None:
        """Endless printing is bounded in memory and can be interrupted. [CP-141]"""
        cell = self.host.start("while True: print('x' * 1000)")
        path = os.path.join(self.host.dir, "spool-e-1")
        wait_for(lambda: os.path.exists(path) and spooled(path)[0] > 1 << 20, "a first flood")
        before = self.memory()
        wait_for(lambda: spooled(path)[0] > 200 << 20, "more of the flood")
        self.assertLess(self.memory() - before, 8 << 20)
        self.host.interrupt(cell)
        result = self.host.finish(cell)
        self.assertEqual(result.status, "interrupted")
        self.assertEqual(len(result.text("stdout")) + result.dropped, spooled(path)[0])

    def memory(self) -> int:
        """Resident bytes of the worker."""
        with open(f"/proc/{self.host.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()


class Text(WorkerTest):
    """Text that is not plain."""

    def test_lone_surrogates(self) -> None:
        """Half a surrogate pair comes out as its escape, everywhere. [CP-142 CP-033]"""
        self.assertEqual(self.ok("print('a\\ud83d')").text("stdout"), "a\\ud83d\n")
        self.assertEqual(self.ok("class C:\n    def __repr__(s): return 'r\\udc00'\nC()").value, "r\\udc00")
        self.assertIn("e\\ud83d", self.host.run("raise ValueError('e\\ud83d')").error)
        self.assertEqual(self.ok("'\\ud83d' + '\\n'").value, "'\\ud83d\\n'")

    def test_bytes(self) -> None:
        """Bytes written to the buffer are text, or escapes where they are none. [CP-033]"""
        code = "import sys\nb = sys.stdout.buffer\nb.write('é'.encode()[:1]); b.write('é'.encode()[1:]); b.write(b'\\xff|')\nprint('end')"
        self.assertEqual(self.ok(code).text("stdout"), "é\\xff|end\n")

    def test_control_characters_and_separators(self) -> None:
        """Anything a str can hold arrives as it was. [CP-007]"""
        text = "".join(map(chr, range(0x250))) + "\u2028\U0001f600"
        self.assertEqual(self.ok(f"print({text!r}, end='')").text("stdout"), text)

    def test_closed_stdout(self) -> None:
        """Closing stdout fails the prints of that cell only. [CP-033]"""
        result = self.host.run("import sys\nsys.stdout.close()\nprint('x')")
        self.assertIn("ValueError: I/O operation on closed file", result.error)
        self.assertEqual(self.ok("print('again')").text("stdout"), "again\n")

    def test_stream_attributes(self) -> None:
        """The streams look like text files that are no terminal. [CP-032]"""
        code = "import sys\nsys.stdout.encoding, sys.stdout.isatty(), sys.stdout.fileno(), sys.stdin.read(), sys.stderr.writable()"
        self.assertEqual(self.ok(code).value, "('utf-8', False, 1, '', True)")

    def test_redirect(self) -> None:
        """redirect_stdout and a print to a file of one's own work. [CP-032]"""
        code = "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f: print('in')\nf.getvalue()"
        self.assertEqual(self.ok(code).records, [("result", "'in\\n'")])


class Late(WorkerTest):
    """Output after the end of its cell."""

    def late(self, cell: str, text: str) -> None:
        """Wait until the late output of cell holds text."""
        while text not in "".join(m["text"] for m in self.host.late if m["id"] == cell):
            self.host.late.append(self.host.receive())

    def test_thread(self) -> None:
        """A thread's output goes to the cell that started it. [CP-143 CP-033]"""
        self.ok(
            "import threading\ngate = threading.Event()\n"
            "def work():\n    gate.wait(); print('from thread')\n"
            "t = threading.Thread(target=work); t.start()"
        )
        result = self.ok("gate.set(); t.join()\nprint('mine')")
        self.assertEqual(result.text("stdout"), "mine\n")
        self.late("e-1", "from thread\n")
        self.assertEqual({m["id"] for m in self.host.late}, {"e-1"})

    def test_task(self) -> None:
        """A task's output too. [CP-143]"""
        self.ok("import asyncio\ngate = asyncio.Event()\nasync def work():\n    await gate.wait(); print('from task')\nt = asyncio.create_task(work())")
        self.assertEqual(self.ok("gate.set()\nawait t\nprint('mine')").text("stdout"), "mine\n")
        self.late("e-1", "from task\n")

    def test_failing_thread(self) -> None:
        """The traceback of a thread is output of its cell. [CP-143 CP-031]"""
        code = "import threading\nt = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()"
        self.assertIn("ZeroDivisionError", self.ok(code).text("stderr"))

    def test_bound(self) -> None:
        """Late output is cut at 8 KiB a cell and the rest counted. [CP-143]"""
        self.ok("import threading\ngate = threading.Event()\nt = threading.Thread(target=lambda: (gate.wait(), print('z' * 20000)))\nt.start()")
        self.ok("gate.set(); t.join()")
        self.late("e-1", "z" * 8192)
        self.ok("1")
        self.assertEqual(sum(len(m["text"]) for m in self.host.late), 8192)

    def test_thread_pool_started_by_executor(self) -> None:
        """Work in an executor prints into the running cell. [CP-143]"""
        code = "import asyncio\nawait asyncio.to_thread(print, 'there')"
        self.assertEqual(self.ok(code).text("stdout"), "there\n")
