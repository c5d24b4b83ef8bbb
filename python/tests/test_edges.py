"""Cells that do what a session must survive."""

import os
import signal

from tests.support import Gone, Host, WorkerTest, wait_for


class Values(WorkerTest):
    """Values whose repr misbehaves."""

    def test_repr_that_raises(self) -> None:
        """A bounded note; the value stays bound. [CP-033]"""
        result = self.ok("class Bad:\n    def __repr__(self): raise ValueError('x' * 10**6)\nb = Bad()\nb")
        self.assertEqual(result.value, "<Bad object; its repr raised ValueError>")
        self.assertEqual(self.ok("_ is b").value, "True")

    def test_repr_that_exits(self) -> None:
        """A repr that leaves is an error of the cell. [CP-033]"""
        result = self.host.run("class Bad:\n    def __repr__(self): raise SystemExit(3)\nBad()")
        self.assertEqual(result.status, "error")
        self.assertIn("SystemExit: 3", result.error)

    def test_repr_that_recurses(self) -> None:
        """Recursion in a repr is a note too. [CP-033]"""
        result = self.ok("class Bad:\n    def __repr__(self): return repr(self)\nBad()")
        self.assertEqual(result.value, "<Bad object; its repr raised RecursionError>")

    def test_repr_that_is_no_text(self) -> None:
        """A repr of another type is a note. [CP-033]"""
        result = self.ok("class Bad:\n    def __repr__(self): return 5\nBad()")
        self.assertEqual(result.value, "<Bad object; its repr raised TypeError>")

    def test_huge_repr(self) -> None:
        """A repr of 50 MB is cut; what is cut is counted. [CP-033]"""
        result = self.ok("class Big:\n    def __repr__(self): return 'q' * 50_000_000\nBig()")
        text = result.value or ""
        self.assertLessEqual(len(text.encode()), 65_536)
        self.assertIn("50000000 bytes", text)
        self.assertEqual(text.count("q") + result.dropped, 50_000_000)

    def test_long_error(self) -> None:
        """A long error keeps its head and its tail. [CP-142 CP-009]"""
        result = self.host.run("raise ValueError('a' + 'é' * 500_000 + 'z')")
        self.assertLessEqual(len(result.error.encode()), 65_536)
        self.assertTrue(result.error.startswith("Traceback"))
        self.assertTrue(result.error.endswith("éz\n"))

    def test_exception_whose_text_raises(self) -> None:
        """An exception that cannot be told is told by its type. [CP-033]"""
        result = self.host.run("class E(Exception):\n    def __str__(self): raise KeyError('k')\nraise E")
        self.assertEqual(result.status, "error")
        self.assertIn("E: <exception str() failed>", result.error)


class Exits(WorkerTest):
    """Cells that try to leave."""

    def test_sys_exit(self) -> None:
        """sys.exit is an error of the cell; the namespace stays. [CP-142]"""
        for code in ("import sys; sys.exit(3)", "exit(3)", "async def f(): raise SystemExit(3)\nawait f()"):
            with self.subTest(code):
                self.ok("kept = 1")
                result = self.host.run(code)
                self.assertEqual(result.status, "error")
                self.assertIn("SystemExit: 3", result.error)
                self.assertEqual(self.ok("kept").value, "1")

    def test_os_exit(self) -> None:
        """os._exit ends the process with its status and no reply. [CP-142]"""
        self.host.start("import os; os._exit(7)")
        with self.assertRaises(Gone):
            self.host.receive()
        self.assertEqual(self.host.process.wait(10), 7)

    def test_os_exit_after_a_print(self) -> None:
        """What was printed just before os._exit arrives, once, and a child sends none of it. [CP-142 CP-009]"""
        for code, want in (
            ("import os; print('one'); os._exit(3)", "one\n"),
            ("import os\nprint('one')\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)\nos._exit(3)", "one\n"),
            ("import os\nfor i in range(9000): print('x')\nos._exit(3)", "x\n" * 9000),
        ):
            with self.subTest(code):
                host = Host()
                self.addCleanup(host.close)
                host.start(code)
                text = ""
                with self.assertRaises(Gone):
                    while True:
                        text += host.receive()["text"]
                self.assertEqual(host.process.wait(10), 3)
                self.assertEqual(text, want)
                self.assertEqual(host.raw()[0], "")

    def test_closing_the_connection(self) -> None:
        """A cell that closes the worker's descriptors ends the worker, which says so. [CP-024]"""
        for code in (
            "import os; os.closerange(3, 64)",
            "import os; os.closerange(3, 64); f = [open('/dev/null') for _ in range(40)]",
            "import os, socket; os.closerange(3, 64); f = [s for _ in range(20) for s in socket.socketpair()]",
            "import os; os.closerange(0, 64)",
        ):
            with self.subTest(code):
                host = Host()
                self.addCleanup(host.close)
                host.start(code)
                with self.assertRaises(Gone):
                    while True:
                        host.receive(5)
                self.assertEqual(host.process.wait(5), 71)
                if "(0," not in code:
                    self.assertIn("closed the worker's connection", host.raw()[1])

    def test_fork(self) -> None:
        """A forked child leaves at the end of the cell; one reply comes. [CP-142 CP-033]"""
        for code, status in (
            ("import os\npid = os.fork()\nx = 1", 0),
            ("import os, sys\npid = os.fork()\nif not pid: sys.exit(5)", 5),
            ("import os\npid = os.fork()\nif not pid: 1 / 0", 1),
            ("import os\nasync def f(): return os.fork()\npid = await f()", 0),
        ):
            with self.subTest(code):
                self.ok(code)
                ended = self.ok("os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])")
                self.assertEqual((ended.value, ended.frames), (str(status), []))
        self.assertIn("ZeroDivisionError", self.host.raw()[1])

    def test_prints_of_a_forked_child(self) -> None:
        """What a child prints goes to the process's descriptors, not into a record. [CP-032 CP-033]"""
        result = self.ok("import os\nprint('parent')\npid = os.fork()\nif not pid: print('child')\nos.waitpid(pid, 0) if pid else 0")
        self.assertEqual(result.text("stdout"), "parent\n")
        self.assertEqual(self.host.raw()[0], "child\n")

    def test_forked_child_has_no_host(self) -> None:
        """A child can ask nothing. [CP-041]"""
        code = (
            "import os, asyncio\nfrom reeve import local, HostError\npid = os.fork()\nif not pid:\n"
            "    try: asyncio.run(local.send('x'))\n    except HostError as e: os._exit(len(e.code))\n"
            "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
        )
        result = self.ok(code)
        self.assertEqual(result.value, str(len("scope_expired")))
        self.assertEqual([f for f in result.frames if f["kind"] == "host_request"], [])


    def test_crash(self) -> None:
        """A crash in C leaves a stack on descriptor 2. [CP-033]"""
        self.host.start("def boom():\n    import ctypes; ctypes.string_at(0)\nboom()")
        with self.assertRaises(Gone):
            self.host.receive()
        self.assertEqual(self.host.process.wait(10), -signal.SIGSEGV)
        self.assertIn("in boom", self.host.raw()[1])


class Limits(WorkerTest):
    """Recursion and memory."""

    def test_recursion(self) -> None:
        """Endless recursion, also through print, is an error; the session goes on. [CP-033]"""
        for code in ("def f(): f()\nf()", "def f(): print('.', end=''); f()\nf()"):
            with self.subTest(code):
                result = self.host.run(code)
                self.assertEqual(result.status, "error")
                self.assertIn("RecursionError", result.error)
                self.assertIn("more times]", result.error)
                self.assertEqual(self.ok("1").value, "1")

    def test_deep_source(self) -> None:
        """Source too deep for the compiler is an error. [CP-033]"""
        result = self.host.run("(" * 150 + "1" + ")" * 150 + "\n" + "-" * 100_000 + "1")
        self.assertEqual(result.status, "error")
        self.assertEqual(self.ok("1").value, "1")

    def test_memory_error(self) -> None:
        """Running out of memory is an error where Python can tell it. [CP-033]"""
        code = (
            "import resource\nlimits = resource.getrlimit(resource.RLIMIT_AS)\n"
            "resource.setrlimit(resource.RLIMIT_AS, (300 << 20, limits[1]))\nx = [0] * (1 << 29)"
        )
        result = self.host.run(code)
        self.assertEqual(result.status, "error")
        self.assertIn("MemoryError", result.error)
        self.assertEqual(self.ok("resource.setrlimit(resource.RLIMIT_AS, limits)\n1").value, "1")

    def test_null_bytes(self) -> None:
        """Source with a null byte is an error. [CP-031]"""
        result = self.host.run("x = 1\x00")
        self.assertEqual(result.status, "error")
        self.assertIn("null bytes", result.error)


class Input(WorkerTest):
    """There is no keyboard."""

    def test_input(self) -> None:
        """input() fails at once and names the way out; stdin is at its end. [CP-142]"""
        result = self.host.run("input('name? ')")
        self.assertEqual(result.status, "error")
        self.assertIn("EOFError: input() has nobody to ask", result.error)
        self.assertNotIn("await", result.error)
        self.assertIn("in place of name = input()", result.error)
        self.ok("name = 'Ada'")
        self.assertEqual(self.ok("import sys\nsys.stdin.read(), sys.stdin.readline(), list(sys.stdin)").value, "('', '', [])")
        self.assertIn("EOFError", self.host.run("import getpass\ngetpass.getpass()").error)


class Signals(WorkerTest):
    """Signal handlers of cells."""

    def test_handler_in_a_cell(self) -> None:
        """A handler runs, and what it raises is raised in the cell. [CP-033]"""
        code = (
            "import signal, time\ndef ring(*a): raise TimeoutError('ring')\n"
            "old = signal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(60)"
        )
        result = self.host.run(code)
        self.assertEqual(result.status, "error")
        self.assertIn("TimeoutError: ring", result.error)

    def test_handler_between_cells(self) -> None:
        """What a handler raises between cells is late output and ends nothing. [CP-033 CP-143]"""
        for way in ("", "await asyncio.sleep(0)\n"):
            with self.subTest(way):
                self.host.late.clear()
                cell = self.host.start(
                    f"import signal, asyncio\n{way}def ring(*a): raise TimeoutError('ring')\n"
                    "old = signal.signal(signal.SIGALRM, ring)\na = signal.setitimer(signal.ITIMER_REAL, 0.2)"
                )
                self.assertEqual(self.host.finish(cell).status, "ok")
                late = self.host.until(lambda m: bool(m["kind"] == "output"))
                self.assertEqual((late["id"], late["stream"]), (cell, "stderr"))
                self.assertIn("TimeoutError: ring", late["text"])
                self.assertEqual(self.ok("1").value, "1")

    def test_prints_of_a_handler(self) -> None:
        """A handler that prints while the cell prints deadlocks nothing. [CP-033]"""
        code = (
            "import signal\nrung = 0\ndef ring(*a):\n    global rung\n    rung += 1; print('ring')\n"
            "old = signal.signal(signal.SIGALRM, ring)\na = signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
            "while rung < 50: print('x')\na = signal.setitimer(signal.ITIMER_REAL, 0)"
        )
        self.ok(code)


class Children(WorkerTest):
    """Subprocesses and pools."""

    def test_subprocess_that_fills_its_pipes(self) -> None:
        """1 MiB to stderr, then 1 MiB to stdout, captured by the cell."""
        child = "import sys; sys.stderr.write('e' * (1 << 20)); sys.stdout.write('o' * (1 << 20))"
        code = f"import subprocess, sys\nr = subprocess.run([sys.executable, '-c', {child!r}], capture_output=True)\nlen(r.stdout), len(r.stderr)"
        self.assertEqual(self.ok(code).value, f"({1 << 20}, {1 << 20})")

    def test_raw_output_of_a_subprocess(self) -> None:
        """What a subprocess prints by itself goes to the descriptors. [CP-032]"""
        self.assertEqual(self.ok("import os\na = os.system('echo raw; echo err >&2')").records, [])
        self.assertEqual(self.host.raw(), ("raw\n", "err\n"))

    def test_grandchild_holding_stdout(self) -> None:
        """A child that lives on does not keep its cell open."""
        self.ok("import subprocess\np = subprocess.Popen(['sleep', '600'])")
        self.ok("p.kill(); a = p.wait()")

    def test_token_and_socket_are_not_inherited(self) -> None:
        """A child of a cell has neither the token's pipe nor the connection. [CP-002]"""
        code = "import subprocess\nsubprocess.run(['ls', '-l', '/proc/self/fd'], capture_output=True, text=True).stdout"
        listing = self.ok(code).value or ""
        self.assertNotIn("socket:", listing)

    def test_pool_by_fork_and_by_spawn(self) -> None:
        """A pool maps a printing function that a cell defined. [CP-033]"""
        self.ok("import multiprocessing as mp\nfrom math import sqrt\nBASE = 10\nclass Number:\n    def __init__(self, n): self.n = n")
        self.ok("def f(n):\n    print('in child', n)\n    return Number(BASE + n.n * sqrt(4))")
        for method in ("fork", "spawn"):
            with self.subTest(method):
                code = f"with mp.get_context({method!r}).Pool(2) as pool: got = pool.map(f, map(Number, range(4)))\n[n.n for n in got]"
                self.assertEqual(self.ok(code).value, "[10.0, 12.0, 14.0, 16.0]")
        # A spawned child has its own buffered stdout, which the end of a pool may cut off.
        self.assertGreaterEqual(self.host.raw()[0].count("in child"), 4)

    def test_spawn_repeats_no_effect(self) -> None:
        """A spawned child gets definitions and does not run the cells again."""
        marks = os.path.join(self.host.dir, "marks")
        self.ok(f"open({marks!r}, 'a').write('x')\nimport multiprocessing as mp\ndef f(n): return n + 1")
        self.assertEqual(self.ok("with mp.get_context('spawn').Pool(1) as pool: got = pool.map(f, [1])\ngot").value, "[2]")
        with open(marks, encoding="ascii") as file:
            self.assertEqual(file.read(), "x")

    def test_main_has_no_file(self) -> None:
        """__file__ is unknown in cells, as in the interactive interpreter. [CP-030]"""
        self.assertIn("NameError", self.host.run("__file__").error)
        self.assertEqual(self.ok("import sys\nhasattr(sys.modules['__main__'], '__file__'), __name__").value, "(False, '__main__')")

    def test_process_pool_executor(self) -> None:
        """concurrent.futures works with a cell's function."""
        code = (
            "from concurrent.futures import ProcessPoolExecutor\ndef g(n): return n * 2\n"
            "with ProcessPoolExecutor(2) as pool: got = list(pool.map(g, range(3)))\ngot"
        )
        self.assertEqual(self.ok(code).value, "[0, 2, 4]")


class Loops(WorkerTest):
    """asyncio in its odder uses."""

    def test_asyncio_run(self) -> None:
        """asyncio.run works where nothing awaits, else its error names the fix. [CP-030]"""
        self.ok("import asyncio\nasync def main(): return 3")
        self.assertEqual(self.ok("asyncio.run(main())").value, "3")
        self.assertIn("await main()", self.host.run("await asyncio.sleep(0)\nasyncio.run(main())").error)
        self.assertEqual(self.ok("await main()").value, "3")

    def test_own_loop(self) -> None:
        """A loop of the cell's own, and closing ours, break nothing. [CP-030]"""
        self.ok("import asyncio\nasync def main(): return 3\nawait main()")
        self.assertEqual(self.ok("loop = asyncio.new_event_loop()\nloop.run_until_complete(main())").value, "3")
        self.assertEqual(self.ok("asyncio.get_event_loop().run_until_complete(main())").value, "3")
        self.ok("asyncio.get_event_loop().close()")
        self.assertEqual(self.ok("await main()").value, "3")

    def test_exit_in_a_background_task(self) -> None:
        """A task that exits or interrupts ends nothing but itself. [CP-033]"""
        self.ok("import asyncio, sys\nasync def bad(): sys.exit(4)")
        self.assertEqual(self.ok("t = asyncio.create_task(bad())\nawait asyncio.sleep(0.01)\n5").value, "5")
        self.ok("t2 = asyncio.create_task(bad())")
        wait_for(lambda: self.host.run("t2.done()").value == "True", "the task")

    def test_context_variables_persist(self) -> None:
        """A context variable set in one cell is set in the next, awaited or not. [CP-030]"""
        self.ok("import contextvars, decimal\nv = contextvars.ContextVar('v')\na = v.set(1)\ndecimal.getcontext().prec = 5")
        self.ok("import asyncio\nawait asyncio.sleep(0)\nb = v.get()\na = v.set(b + 1)")
        self.assertEqual(self.ok("v.get(), decimal.getcontext().prec").value, "(2, 5)")


class Imports(WorkerTest):
    """What can be imported."""

    def test_site_comes_with_the_first_foreign_import(self) -> None:
        """site is not run at start, and is when a name outside the library is wanted. [CP-030]"""
        self.ok("import sys, csv, http.client\nbefore = list(sys.path)")
        self.assertEqual(self.ok("'site' in sys.modules").value, "False")
        self.assertIn("ModuleNotFoundError", self.host.run("import no_such_module_anywhere").error)
        self.assertEqual(self.ok("'site' in sys.modules, sys.path[:len(before)] == before").value, "(True, True)")

    def test_installed_packages(self) -> None:
        """A package in site-packages is found. [CP-030]"""
        code = "import sysconfig, os\np = sysconfig.get_path('purelib')\nsorted(os.listdir(p))[:1] if os.path.isdir(p) else []"
        if self.ok(code).value == "[]":
            self.skipTest("the interpreter has no site-packages")
        self.ok("import sys\ntry: import no_such_module\nexcept ImportError: pass")
        self.assertEqual(self.ok("p in sys.path").value, "True")

    def test_workspace_is_importable(self) -> None:
        """Modules of the working directory are found, behind the standard library. [CP-030]"""
        for name in ("mine.py", "csv.py"):
            with open(os.path.join(self.host.dir, name), "w", encoding="ascii") as file:
                file.write("here = True\n")
        self.assertEqual(self.ok("import mine, csv\nmine.here, hasattr(csv, 'here')").value, "(True, False)")

    def test_inspect_finds_sources(self) -> None:
        """inspect and pickle know functions of cells. [CP-030 CP-031]"""
        self.ok("def f():\n    return 1")
        self.assertEqual(self.ok("import inspect, pickle\ninspect.getsource(f)").value, repr("def f():\n    return 1"))
        self.assertEqual(self.ok("pickle.loads(pickle.dumps(f)) is f").value, "True")

    def test_names(self) -> None:
        """Names bound and removed are told just before the completion. [CP-144]"""
        names = self.ok("b = 1\nimport os\ndef a(): pass\n_ = __x__ = 1").names
        self.assertEqual((names["added"], names["removed"]), (["a", "b", "os"], []))
        names = self.ok("del a\nc = 1").names
        self.assertEqual((names["added"], names["removed"]), (["c"], ["a"]))
        self.assertIsNone(self.ok("c = 2").names)
        many = self.ok("globals().update({f'n{i}': i for i in range(9000)})\nglobals()['not a name'] = 1").names
        self.assertEqual(len(many["added"]), 4096)
        long = self.ok("globals().update({'\u5b57' * 250 + str(i): i for i in range(4000)})").names
        self.assertTrue(0 < len(long["added"]) < 4000)
        failed = self.host.run("kept = 1\n1 / 0")
        self.assertEqual(failed.names["added"], ["kept"])
