"""Host requests, the SDK, waiting."""

import json
import os
import tempfile
from typing import Any

from tests.support import Host, WorkerTest

Message = dict[str, Any]


def ok(value: Any) -> Message:
    """A reply that grants."""
    return {"kind": "ok", "value": value}


def asks(message: Message) -> bool:
    """Whether a message is a host request."""
    return bool(message["kind"] == "host_request")


class Requests(WorkerTest):
    """What a cell asks of its host."""

    def record(self, value: Any = None) -> list[Message]:
        """Answer every request with value; return the list the requests go to."""
        seen: list[Message] = []

        def answer(message: Message) -> Message:
            seen.append(message["request"])
            return ok(value)

        self.host.answer = answer
        return seen

    def test_every_method_and_its_defaults(self) -> None:
        """The SDK sends each method of the protocol with all its members. [CP-034]"""
        every = {"results": [{"ok": True, "tool": "t", "result": 1}], "items": [], "current": None}
        seen = self.record(every)
        scope = {"kind": "global"}
        calls: list[tuple[str, Message]] = [
            ("local.send('hi')", {"method": "local.send", "text": "hi"}),
            ("hooks.list()", {"method": "hooks.list"}),
            ("hooks.describe('delivery.review')", {"method": "hooks.describe", "slot": "delivery.review"}),
            ("runtime.inspect()", {"method": "runtime.inspect"}),
            ("runtime.instructions()", {"method": "runtime.instructions"}),
            ("skills.index()", {"method": "skills.index"}),
            ("skills.load('workspace')", {"method": "skills.load", "id": "workspace"}),
            ("workspace.info()", {"method": "workspace.info"}),
            (
                "workspace.run(['ls'])",
                {"method": "workspace.run", "argv": ["ls"], "cwd": ".", "env": {}, "timeout_ms": 120000}
                | {"max_output_bytes": 750000},
            ),
            ("evidence.resolve(['event:1'])", {"method": "evidence.resolve", "refs": ["event:1"]}),
            ("behavior.activate('/r', 3)", {"method": "behavior.activate", "path": "/r", "expected_epoch": 3}),
            (
                "maintenance.originate('p', 'r')",
                {"method": "maintenance.originate", "purpose": "p", "reason": "r", "evidence_refs": []},
            ),
            (
                "maintenance.assess('w', 'changed')",
                {"method": "maintenance.assess", "work_item_id": "w", "outcome": "changed"},
            ),
            (
                "orientation.stage('c', 't', 'x')",
                {"method": "orientation.stage", "candidate_id": "c", "text": "t", "target": "x", "scope": scope},
            ),
            ("orientation.current()", {"method": "orientation.current", "scope": scope}),
            (
                "orientation.adopt('c', 'o')",
                {"method": "orientation.adopt", "candidate_id": "c", "operation_id": "o"},
            ),
            ("frontier.select()", {"method": "frontier.select"}),
            ("peer.open()", {"method": "peer.open", "mode": "independent", "evidence": []}),
            ("agents.open()", {"method": "agents.open", "mode": "independent", "evidence": []}),
            (
                "peer.send('p', 'q', 'c')",
                {"method": "peer.send", "peer_id": "p", "request_id": "q", "content": "c", "evidence": []},
            ),
            (
                "peer.message('p', 'q', 'c')",
                {"method": "peer.message", "peer_id": "p", "request_id": "q", "content": "c", "evidence": []},
            ),
            ("peer.result('q')", {"method": "peer.result", "request_id": "q", "wait_ms": 0}),
            (
                "peer.submit_result('q', {'a': 1})",
                {"method": "peer.submit_result", "request_id": "q", "result": {"a": 1}},
            ),
            ("peer.cancel('q')", {"method": "peer.cancel", "request_id": "q"}),
            ("peer.get('p')", {"method": "peer.get", "peer_id": "p"}),
            ("peer.list()", {"method": "peer.list"}),
            ("peer.stop('p')", {"method": "peer.stop", "peer_id": "p", "drain": True}),
            ("remote.ensure('t')", {"method": "remote.ensure", "target": "t"}),
            (
                "remote.call('t', 'n', 'g', 'o')",
                {"method": "remote.call", "target": "t", "namespace_id": "n", "namespace_generation": "g"}
                | {"operation_id": "o", "operation": "execute", "payload": {}},
            ),
            (
                "remote.cancel('n', 'g', 'o')",
                {"method": "remote.cancel", "namespace_id": "n", "namespace_generation": "g", "operation_id": "o"},
            ),
            (
                "remote.close('n', 'g')",
                {"method": "remote.close", "namespace_id": "n", "namespace_generation": "g"},
            ),
            ("verbs.request('kg.get(id=1)')", {"method": "verbs.request", "ops": "kg.get(id=1)"}),
            (
                "verbs.kg.search(query='x', limit=2)",
                {"method": "verbs.request", "ops": [{"tool": "kg.search", "args": {"query": "x", "limit": 2}}]},
            ),
        ]
        self.ok("import reeve\nfrom reeve import *")
        for source, request in calls:
            with self.subTest(source):
                self.ok(f"await {source}")
                self.assertEqual(seen.pop(), request)
                self.assertEqual(seen, [])

    def test_manual(self) -> None:
        """help() of every function of the SDK has text, and its parameters have types. [CP-034]"""
        code = (
            "import reeve, inspect\n"
            "bad = []\n"
            "for name in reeve.__all__:\n"
            "    module = getattr(reeve, name)\n"
            "    if inspect.ismodule(module):\n"
            "        bad += [] if module.__doc__ else [name]\n"
            "        for key, item in vars(module).items():\n"
            "            if inspect.iscoroutinefunction(item) and not key.startswith('_') and item.__module__ == module.__name__:\n"
            "                hints = inspect.signature(item)\n"
            "                typed = all(p.annotation is not p.empty for p in hints.parameters.values())\n"
            "                bad += [] if item.__doc__ and typed and hints.return_annotation is not hints.empty else [name + '.' + key]\n"
            "bad"
        )
        self.assertEqual(self.ok(code).value, "[]")
        self.assertIn("timeout_ms", self.ok("help(reeve.workspace.run)").text("stdout"))

    def test_replies_in_any_order(self) -> None:
        """Replies find their requests by id, whatever their order. [CP-021 CP-022]"""
        cell = self.host.start(
            "import asyncio\nfrom reeve import local\n"
            "await asyncio.gather(*[local.send(str(n)) for n in range(3)])"
        )
        asked = [self.host.until(asks) for _ in range(3)]
        self.host.answer = lambda m: ok("re " + m["request"]["text"])
        for message in reversed(asked):
            self.host.reply(message)
        self.assertEqual(self.host.finish(cell).value, "['re 0', 're 1', 're 2']")

    def test_errors_have_code_and_message(self) -> None:
        """A refusal is an exception with code and message; the cell goes on. [CP-034 CP-040]"""
        self.host.answer = lambda m: {"kind": "error", "code": "denied", "message": "not today"}
        result = self.ok(
            "import reeve\n"
            "try:\n    await reeve.local.send('x')\n"
            "except reeve.HostError as e:\n    got = e.code, e.message, str(e)\ngot"
        )
        self.assertEqual(result.value, "('denied', 'not today', 'denied: not today')")
        failed = self.host.run("await reeve.local.send('x')")
        self.assertIn("reeve.HostError: denied: not today", failed.error)
        self.assertNotIn("reeve_worker", failed.error)

    def test_bad_values_are_refused_before_they_are_sent(self) -> None:
        """A value that is no JSON is invalid_request and names its field. [CP-040 CP-007]"""
        seen = self.record()
        result = self.host.run("from reeve import peer\nawait peer.submit_result('q', {'a': float('nan')})")
        self.assertIn("invalid_request: result.a: nan is no JSON number", result.error)
        big = self.host.run("await peer.submit_result('q', 'x' * 2_000_000)")
        self.assertIn("limit_exceeded", big.error)
        self.assertEqual(seen, [])

    def test_request_limit(self) -> None:
        """The 129th request of a cell is request_limit. [CP-009 CP-134]"""
        seen = self.record()
        result = self.host.run("from reeve import local\nfor n in range(200): await local.send('x')")
        self.assertIn("request_limit", result.error)
        self.assertEqual(len(seen), 128)
        self.ok("await local.send('x')")

    def test_late_reply_reaches_no_other_cell(self) -> None:
        """A reply after an interrupt is dropped and counted. [CP-023 CP-026]"""
        cell = self.host.start("from reeve import local, runtime\nawait local.send('x')")
        asked = self.host.until(asks)
        self.host.interrupt(cell)
        self.assertEqual(self.host.finish(cell).status, "interrupted")
        following = self.host.start("await local.send('y')")
        second = self.host.until(asks)
        self.host.answer = lambda m: ok(m["request"]["text"])
        self.host.reply(asked)
        self.host.reply(second)
        self.assertEqual(self.host.finish(following).value, "'y'")
        self.assertEqual(self.ok("runtime.counters()['late_replies']").value, "1")

    def test_background_task_keeps_its_origin(self) -> None:
        """A task asks under its own cell's id, and not at all once that has ended. [CP-041 CP-131]"""
        self.host.answer = lambda m: ok(m["execution_id"])
        self.ok("import asyncio\nfrom reeve import local, HostError")
        first = self.ok(
            "async def later():\n"
            "    seen = [await local.send('a')]\n"
            "    await gate.wait()\n"
            "    try: await local.send('b')\n"
            "    except HostError as e: seen.append(e.code)\n"
            "    return seen\n"
            "gate = asyncio.Event()\n"
            "task = asyncio.create_task(later())\n"
            "while gate._waiters == type(gate._waiters)(): await asyncio.sleep(0)"
        )
        origin = next(f["execution_id"] for f in first.frames if f["kind"] == "host_request")
        self.assertEqual(self.ok("gate.set()\nawait task").value, f"['{origin}', 'scope_expired']")

    def test_request_in_flight_ends_with_its_cell(self) -> None:
        """What a background task waits for ends when its cell ends. [CP-041]"""
        self.host.answer = lambda m: None
        self.ok(
            "import asyncio\nfrom reeve import local, HostError\n"
            "task = asyncio.create_task(local.send('x'))\n"
            "await asyncio.sleep(0)"
        )
        result = self.ok("try: await task\nexcept HostError as e: code = e.code\ncode")
        self.assertEqual(result.value, "'scope_expired'")


class Waiting(WorkerTest):
    """runtime.wait."""

    def setUp(self) -> None:
        super().setUp()
        self.seen: list[Message] = []

        def answer(message: Message) -> Message:
            self.seen.append(message["request"])
            return ok({"accepted": True})

        self.host.answer = answer
        self.ok("import asyncio\nfrom reeve import runtime, local, HostError")

    def test_wait_ends_the_cell(self) -> None:
        """An accepted wait is the end of the cell: yielded, no error."""
        result = self.host.run("before = 1\nawait runtime.wait(5, 'tea')\nafter = 1")
        self.assertEqual((result.status, result.error), ("yielded", None))
        self.assertEqual(self.seen, [{"method": "runtime.wait", "seconds": 5, "reason": "tea"}])
        self.assertEqual(self.ok("before, 'after' in globals()").value, "(1, False)")

    def test_catching_the_sentinel_restores_nothing(self) -> None:
        """A yielded cell may ask nothing more, and stays yielded. [CP-041]"""
        result = self.host.run(
            "try: await runtime.wait()\nexcept BaseException: pass\n"
            "try: await local.send('x')\nexcept HostError as e: code = e.code"
        )
        self.assertEqual(result.status, "yielded")
        self.assertEqual([r["method"] for r in self.seen], ["runtime.wait"])
        self.assertEqual(self.ok("code").value, "'scope_expired'")

    def test_error_after_a_wait_is_shown_but_changes_nothing(self) -> None:
        """An exception on the way out is printed; the status stays."""
        result = self.host.run("try: await runtime.wait()\nfinally: 1 / 0")
        self.assertEqual((result.status, result.error), ("yielded", None))
        self.assertIn("ZeroDivisionError", result.text("stderr"))

    def test_wait_in_a_task_ends_the_cell(self) -> None:
        """A wait accepted in a task of the cell ends the cell too."""
        result = self.host.run("t = asyncio.create_task(runtime.wait())\nawait asyncio.sleep(600)")
        self.assertEqual(result.status, "yielded")

    def test_refused_wait_is_an_exception(self) -> None:
        """A wait that is refused ends nothing. [CP-040]"""
        self.host.answer = lambda m: {"kind": "error", "code": "invalid_request", "message": "seconds"}
        result = self.ok("try: await runtime.wait(601)\nexcept HostError as e: code = e.code\ncode")
        self.assertEqual(result.value, "'invalid_request'")

    def test_sleep_is_only_a_sleep(self) -> None:
        """asyncio.sleep asks nobody. [CP-052]"""
        self.assertEqual(self.ok("await asyncio.sleep(0.01)").status, "ok")
        self.assertEqual(self.seen, [])


class Names(WorkerTest):
    """Import names and skills."""

    def test_aliases(self) -> None:
        """klbr is reeve under its older name. [CP-034]"""
        code = "import klbr, reeve, klbr.workspace\nfrom klbr import runtime\nimport reeve.runtime\n"
        checks = "klbr is reeve, runtime is reeve.runtime, klbr.workspace is reeve.workspace, reeve.__name__"
        self.assertEqual(self.ok(code + checks).value, "(True, True, True, 'reeve')")

    def test_skills(self) -> None:
        """Skills are importable by id and their revision is echoed."""
        revision = "ab" * 32
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"revision": revision, "skills": [{"id": "read-mail", "body": "# read-mail\nslowly"}]}, file)
            file.flush()
            host = Host("--skills", file.name)
        self.addCleanup(host.close)
        self.assertFalse(os.path.exists(file.name))
        self.assertEqual(host.hello["skills"], revision)
        result = host.run("import klbr.skills.read_mail\nimport reeve.skills.read_mail as s\ns.__doc__")
        self.assertEqual(result.value, repr("# read-mail\nslowly"), result.error)
