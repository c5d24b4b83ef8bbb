"""Cells: namespace, values, await, statuses."""

from tests.support import WorkerTest


class Cells(WorkerTest):
    """What a cell leaves behind and how it ends."""

    def test_hello(self) -> None:
        """A workbench greets with its role and nothing that belongs to hooks."""
        expected: dict[str, object] = {"role": "workbench", "revision": None, "slots": [], "skills": None}
        self.assertEqual({k: self.host.hello[k] for k in expected}, expected)

    def test_namespace_persists(self) -> None:
        """Names live on; the final expression is shown; _ keeps the last value. [CP-030]"""
        self.assertIsNone(self.ok("x = 20\ny = 22").value)
        self.assertEqual(self.ok("x + y").value, "42")
        self.assertIsNone(self.ok("None").value)
        self.assertEqual(self.ok("_").value, "42")

    def test_future_flags_persist(self) -> None:
        """A __future__ import holds for later cells. [CP-030]"""
        self.ok("from __future__ import annotations")
        self.assertEqual(self.ok("def f(a: nowhere): pass\nf.__annotations__").value, "{'a': 'nowhere'}")

    def test_top_level_await(self) -> None:
        """A cell may await, and its last expression too. [CP-030]"""
        self.ok("import asyncio\nasync def f(): await asyncio.sleep(0); return 5")
        self.assertEqual(self.ok("a = await f()\na + await f()").value, "10")
        self.assertEqual(self.ok("[await f() for _ in 'ab']").value, "[5, 5]")

    def test_asyncio_is_not_imported_before_it_is_needed(self) -> None:
        """A worker that never awaits has no asyncio, json, re, threading. [CP-030]"""
        modules = "{'asyncio', 'json', 're', 'enum', 'threading', 'traceback', 'socket', 'site'}"
        self.assertEqual(self.ok(f"import sys\nsorted({modules} & set(sys.modules))").value, "[]")
        self.ok("async def f(): pass\nawait f()")
        self.assertEqual(self.ok("'asyncio' in sys.modules").value, "True")

    def test_background_tasks_live_on(self) -> None:
        """A task goes on between cells, on one loop. [CP-030]"""
        self.ok("import asyncio, time\nseen = []")
        self.ok("async def tick():\n    for n in range(3):\n        seen.append(n)\n        await asyncio.sleep(0.01)")
        self.ok("task = asyncio.create_task(tick())")
        self.assertEqual(self.ok("await task\nseen").value, "[0, 1, 2]")

    def test_error_shows_only_the_cells_own_frames(self) -> None:
        """A traceback has source lines and no frame of the worker. [CP-031]"""
        self.ok("def divide(n):\n    return 1 / n")
        result = self.host.run("x = 1\ndivide(0)")
        self.assertEqual(result.status, "error")
        self.assertIn("    divide(0)\n", result.error)
        self.assertIn("    return 1 / n\n", result.error)
        self.assertIn("ZeroDivisionError: division by zero", result.error)
        self.assertNotIn("reeve_worker", result.error)
        self.assertEqual(self.ok("x").value, "1")

    def test_awaiting_error_shows_only_the_cells_own_frames(self) -> None:
        """The same for a cell that awaits. [CP-031]"""
        result = self.host.run("async def f(): raise ValueError('no')\nawait f()")
        self.assertEqual(result.status, "error")
        self.assertIn("async def f(): raise ValueError('no')", result.error)
        self.assertNotIn("reeve_worker", result.error)

    def test_syntax_error(self) -> None:
        """A cell that does not compile is an error with its place. [CP-031]"""
        result = self.host.run("x = = 1")
        self.assertEqual(result.status, "error")
        self.assertIn("SyntaxError: invalid syntax", result.error)
        self.assertIn("x = = 1", result.error)
