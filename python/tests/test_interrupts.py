"""Interrupts, shutdown and the end of the connection."""

import os
import signal
import socket

from tests.support import Gone, Host, WorkerTest, wait_for


class Interrupts(WorkerTest):
    """A running cell is stopped; its names stay and the loop goes on."""

    def begun(self, code: str) -> str:
        """Start a cell that says when it is under way; return its id."""
        cell = self.host.start("kept = 1\nprint('go', flush=True)\n" + code)
        self.host.until(lambda m: m["kind"] == "output" and "go" in m["text"])
        return cell

    def check(self, code: str) -> None:
        """Interrupt a cell by frame; all must be well afterwards."""
        cell = self.begun(code)
        self.host.interrupt(cell)
        result = self.host.finish(cell)
        self.assertEqual(result.status, "interrupted", result.error)
        self.assertNotIn("reeve_worker", result.error)
        self.assertEqual(self.ok("kept").value, "1")
        self.assertEqual(self.ok("import asyncio\nawait asyncio.sleep(0)\nkept").value, "1")

    def test_sleep(self) -> None:
        """A blocking sleep. [CP-026]"""
        self.check("import time\ntime.sleep(600)")

    def test_await(self) -> None:
        """A top-level await; the loop is usable afterwards. [CP-026]"""
        self.check("import asyncio\nawait asyncio.sleep(600)")

    def test_sleep_inside_a_coroutine(self) -> None:
        """A blocking sleep inside an awaited coroutine. [CP-026]"""
        self.check("import time\nasync def f(): time.sleep(600)\nawait f()")

    def test_loop(self) -> None:
        """A pure Python loop. [CP-026]"""
        self.check("while True: pass")

    def test_printing_loop(self) -> None:
        """A loop that prints, so that the interrupt often meets the worker's own code. [CP-026]"""
        self.check("while True: print('x')")

    def test_asyncio_run(self) -> None:
        """A loop of the cell's own. [CP-026]"""
        self.check("import asyncio\nasyncio.run(asyncio.sleep(600))")

    def test_slow_repr(self) -> None:
        """A repr that sleeps is interrupted; the value stays bound. [CP-033]"""
        self.ok("import time\nclass Slow:\n    def __repr__(self):\n        print('go', flush=True); time.sleep(600)")
        cell = self.host.start("kept = Slow()\nkept")
        self.host.until(lambda m: m["kind"] == "output" and "go" in m["text"])
        self.host.interrupt(cell)
        self.assertEqual(self.host.finish(cell).status, "interrupted")
        self.assertEqual(self.ok("type(kept).__name__").value, "'Slow'")

    def test_signal_from_the_host(self) -> None:
        """SIGINT does what the frame does, also in C code that holds the interpreter. [CP-026]"""
        for code in ("import re\nre.match('(a+)+$', 'a' * 60 + 'b')", "while True: pass"):
            with self.subTest(code):
                cell = self.begun(code)
                os.kill(self.host.process.pid, signal.SIGINT)
                self.assertEqual(self.host.finish(cell).status, "interrupted")
                self.assertEqual(self.ok("kept").value, "1")

    def test_interrupt_right_behind_its_cell(self) -> None:
        """An interrupt that overtakes the start of its cell is not lost. [CP-026]"""
        for _ in range(20):
            cell = self.host.start("import time\ntime.sleep(600)")
            self.host.interrupt(cell)
            self.assertEqual(self.host.finish(cell).status, "interrupted")

    def test_other_id_is_ignored(self) -> None:
        """An interrupt for another operation is counted and does nothing. [CP-026]"""
        cell = self.begun("import time\ntime.sleep(0.2)\n'whole'")
        self.host.interrupt("e-999")
        self.assertEqual(self.host.finish(cell).value, "'whole'")
        self.host.interrupt(cell)
        os.kill(self.host.process.pid, signal.SIGINT)
        result = self.ok("from reeve import runtime\nimport time\ntime.sleep(0.1)\nruntime.counters()['ignored_interrupts']")
        self.assertGreaterEqual(int(result.value or "0"), 2)

    def test_keyboard_interrupt_of_the_code_is_an_error(self) -> None:
        """KeyboardInterrupt and CancelledError raised by code are errors. [CP-142]"""
        self.assertEqual(self.host.run("raise KeyboardInterrupt").status, "error")
        self.assertEqual(self.host.run("import asyncio\nraise asyncio.CancelledError").status, "error")

    def test_cell_that_survives_an_interrupt(self) -> None:
        """A cell that handles the interrupt and goes on ends as it ends. [CP-026]"""
        code = "import time\ntry: print('go', flush=True); time.sleep(600)\nexcept KeyboardInterrupt: got = 'caught'\ngot"
        cell = self.host.start(code)
        self.host.until(lambda m: bool(m["kind"] == "output"))
        self.host.interrupt(cell)
        result = self.host.finish(cell)
        self.assertEqual((result.status, result.value), ("ok", "'caught'"))

    def test_own_sigint_handler_lasts_for_its_cell(self) -> None:
        """A handler that a cell installs is gone in the next one. [CP-033]"""
        self.ok("import signal\nold = signal.signal(signal.SIGINT, lambda *a: None)")
        self.check("import time\ntime.sleep(600)")

    def test_background_task_survives_the_interrupt_of_a_cell(self) -> None:
        """Only the cell is stopped. [CP-026 CP-030]"""
        self.ok("import asyncio\ngate = asyncio.Event()\nasync def bg():\n    await gate.wait(); return 7\nt = asyncio.create_task(bg())")
        self.check("import asyncio\nawait asyncio.sleep(600)")
        self.assertEqual(self.ok("gate.set()\nawait t").value, "7")

    def test_second_execute_is_refused(self) -> None:
        """A second cell while one runs is failed; the first is not disturbed. [CP-020]"""
        cell = self.begun("import time\ntime.sleep(0.3)\n'whole'")
        self.host.send({"kind": "execute", "id": "e-77", "code": "kept = 2"})
        refused = self.host.until(lambda m: bool(m["kind"] == "completed"))
        self.assertEqual((refused["id"], refused["result"]["kind"]), ("e-77", "failed"))
        self.assertEqual(self.host.finish(cell).value, "'whole'")
        self.assertEqual(self.ok("kept").value, "1")


class Leaving(WorkerTest):
    """How a worker process ends by itself."""

    def test_shutdown_of_an_idle_worker(self) -> None:
        """Exit handlers run, then the process ends with 0. [CP-028]"""
        self.ok("import atexit, os\natexit.register(os.write, 1, b'bye')")
        self.host.send({"kind": "shutdown"})
        self.assertEqual(self.host.process.wait(10), 0)
        self.assertEqual(self.host.raw()[0], "bye")

    def test_shutdown_with_background_work(self) -> None:
        """Tasks and threads that would go on do not hold the process. [CP-028]"""
        self.ok("import asyncio, threading, time\nasync def f():\n    while True: await asyncio.sleep(9)\nt = asyncio.create_task(f())")
        self.ok("threading.Thread(target=time.sleep, args=(600,)).start()")
        self.host.send({"kind": "shutdown"})
        self.assertEqual(self.host.process.wait(10), 0)

    def test_shutdown_of_a_busy_worker(self) -> None:
        """A cell that will not end does not hold the process either. [CP-028 CP-022]"""
        self.host.start("while True:\n    try:\n        while True: pass\n    except BaseException: pass")
        self.host.send({"kind": "shutdown"})
        self.assertEqual(self.host.process.wait(10), 0)

    def test_end_of_the_connection(self) -> None:
        """A worker whose host has gone leaves, whatever its cell does. [CP-008]"""
        self.host.start("import time\ntime.sleep(600)")
        self.host.socket.shutdown(socket.SHUT_RDWR)
        self.assertEqual(self.host.process.wait(10), 0)

    def test_bad_frame_ends_the_worker(self) -> None:
        """A fault in a frame ends the process and is said on descriptor 2. [CP-005 CP-008]"""
        for payload in (
            b'{"version":1,"version":1}',
            b'{"version":1,"session_id":"s-1","generation":"g-2","message":{"kind":"shutdown"}}',
            b'{"version":1,"session_id":"s-1","generation":"g-1","message":{"kind":"hello"}}',
        ):
            with self.subTest(payload):
                host = Host()
                self.addCleanup(host.close)
                host.send_raw(payload)
                with self.assertRaises((Gone, ConnectionError)):
                    host.receive()
                self.assertEqual(host.process.wait(10), 70)
                self.assertIn("reeve worker: read frame", host.raw()[1])

    def test_wrong_flags(self) -> None:
        """A worker that cannot start says why."""
        with self.assertRaisesRegex(AssertionError, "unknown flag '--nonsense'"):
            Host("--nonsense", "1")

    def test_stopped_reader_thread_is_not_needed_to_die(self) -> None:
        """SIGTERM ends the process as it ends any other. [CP-026]"""
        self.host.start("sum(range(10**12))")
        self.host.process.terminate()
        wait_for(lambda: self.host.process.poll() is not None, "the end of the worker")
        self.assertEqual(self.host.process.returncode, -signal.SIGTERM)
