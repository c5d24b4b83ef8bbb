"""The life of a worker: take an operation, run it, tell how it ended.

Owned by the main thread. The reader thread calls claim, hand_over, refuse and deliver.
"""

from __future__ import annotations

import _thread
import builtins
import os
import sys

from reeve_worker.capture import ORIGIN, Capture, Cell, EmptyInput, TextStream, refuse_input, thread_starters
from reeve_worker.channel import Channel
from reeve_worker.errors import describe, keep_for_debugger, skip_ours
from reeve_worker.imports import Finder
from reeve_worker.interrupts import Interrupts
from reeve_worker.loops import Loops
from reeve_worker.messages import MAX_FRAME, MAX_NAMES
from reeve_worker.namespace import COROUTINE, Namespace, Program
from reeve_worker.output import Flusher, Output
from reeve_worker.rich import Artifacts, is_rich, prepare_matplotlib, prepare_pyplot

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, NoReturn
    import contextvars as _contextvars
    import queue as _queue
else:
    import _contextvars
    import _queue


_NOTHING: Any = object()  # a cell without a final expression


def _bounded(names: list[str], count: int) -> list[str]:
    """The first count names, fewer when they would fill a good part of a frame."""
    room = MAX_FRAME // 3
    for index, name in enumerate(names[:count]):
        room -= len(name.encode()) + 3
        if room < 0:
            return names[:index]
    return names[:count]


class Worker:
    """One worker process."""

    def __init__(self, channel: Channel, directory: str) -> None:
        self.channel = channel
        self.directory = directory
        self.pid = os.getpid()
        self._inbox: "_queue.SimpleQueue[dict[str, Any]]" = _queue.SimpleQueue()
        self.interrupts = Interrupts()
        self.context = _contextvars.copy_context()
        self.loops = Loops(self.interrupts, self.context)
        self.space = Namespace(directory)
        self.capture = Capture()
        self.finder = Finder()
        self.flusher = Flusher(_thread.start_new_thread)
        self.cell: Cell | None = None
        self._requests: Any = None  # until a cell imports the SDK
        self._late_output = 0
        self._late_replies = 0
        self.busy = ""
        self._busy_lock = _thread.allocate_lock()
        self._streams = TextStream(self.capture, 1), TextStream(self.capture, 2)

    def prepare(self) -> None:
        """Make the process look to cells like an interactive interpreter."""
        process: Any = sys  # whose attributes are declared as files, which ours only resemble
        process.stdout = process.__stdout__ = self._streams[0]
        process.stderr = process.__stderr__ = self._streams[1]
        process.stdin = process.__stdin__ = EmptyInput()
        sys.argv = [""]
        sys.path.append(os.getcwd())  # behind the standard library, before site-packages
        sys.modules["__main__"] = self.space.module
        sys.displayhook = self._display
        sys.meta_path.insert(0, self.finder)
        builtins.input = refuse_input
        import _sitebuiltins
        import faulthandler

        faulthandler.enable(2)  # a crash in C leaves its Python stack in the diagnostic tail

        added: Any = builtins  # what site would add, had it run
        added.help = _sitebuiltins._Helper()
        added.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
        added.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
        self.capture.after_write = self.interrupts.release
        self.capture.fallback = lambda: self.cell if self.interrupts.on_main() else None
        thread_starters()
        self.finder.after("linecache", self.space.show_sources)
        self.finder.after("asyncio", self.loops.adopt)
        self.finder.after("reeve_worker.requests", self._open_requests)
        self.finder.before("matplotlib", prepare_matplotlib)
        self.finder.after("matplotlib.pyplot", lambda pyplot: prepare_pyplot(pyplot, self._show_figures))
        os.register_at_fork(after_in_child=self._forked)
        self.interrupts.install()
        plain = os._exit

        def leave_at_once(status: int) -> NoReturn:
            """Exit without cleaning up; what the cell has printed is sent first."""
            try:
                if self.cell is not None and os.getpid() == self.pid:
                    self.cell.output.flush()
                    self.channel.settle(1.0)
            finally:
                plain(status)

        os._exit = leave_at_once

    def _open_requests(self, module: Any) -> None:
        """Connect the SDK, which a cell imports for the first time, to this worker."""
        self._requests = module.current = module.Requests(self.channel)
        self._requests.stop_cell = self.loops.stop_cell
        self._requests.counters = self._counters

    def _counters(self) -> dict[str, int]:
        return {
            "late_replies": self._late_replies + self._requests.late,
            "ignored_interrupts": self.interrupts.ignored,
            "late_output": self._late_output,
        }

    def claim(self, operation: str) -> str:
        """Make operation the one under way; return the id of the one that already is."""
        with self._busy_lock:
            running, self.busy = self.busy, self.busy or operation
        return running

    def _unclaim(self) -> None:
        with self._busy_lock:
            self.busy = ""

    def hand_over(self, message: dict[str, Any]) -> None:
        """Give the main thread a message, waking it if it idles in its loop."""
        self._inbox.put(message)
        self.loops.wake()

    def refuse(self, operation: str, why: str) -> None:
        """Answer an operation that is not run."""
        self.channel.send({"kind": "completed", "id": operation, "result": {"kind": "failed", "error": why}})

    def deliver(self, message: dict[str, Any]) -> None:
        """Give a reply to the request that waits for it."""
        if self._requests is None:
            self._late_replies += 1
        else:
            self._requests.deliver(message)

    def _forked(self) -> None:
        self.capture.forked = True
        if self._requests is not None:
            self._requests.forked = True
        self.channel.abandon()

    def serve(self) -> None:
        """Run operations until a shutdown; never returns."""
        while True:
            try:
                message = self._next()
            except BaseException as error:  # from a signal handler or a task of a cell
                self._report(error)
                continue
            if message["kind"] == "shutdown":
                self._leave()
            try:
                self._execute(message["id"], message["code"])
            except BaseException as error:  # a signal handler of a cell, after its end
                self._finish_anyhow(message["id"], error)

    def _finish_anyhow(self, operation: str, error: BaseException) -> None:
        """Answer an operation whose completion was itself disturbed."""
        self._leave_if_forked(error)
        self.interrupts.end()
        if self.busy == operation:
            self._unclaim()
            self.refuse(operation, f"telling the outcome failed: {describe(error)}")
        else:
            self.channel.flush()
            self._report(error)

    def _next(self) -> dict[str, Any]:
        if self.loops.loop is None or self.loops.loop.is_closed():
            return self._inbox.get()
        while self._inbox.empty():
            self.loops.idle(lambda: not self._inbox.empty())
        return self._inbox.get()

    def _report(self, error: BaseException) -> None:
        """Print what happened between cells, as late output of the last one."""
        self._leave_if_forked(error)
        self.capture.write(2, describe(error))

    def _leave(self) -> None:
        import atexit

        atexit._run_exitfuncs()
        self.flusher.flush()
        os._exit(0)

    def _leave_if_forked(self, error: BaseException | None) -> None:
        """End a child that a cell forked and that came to the end of the cell (CP-142)."""
        if os.getpid() == self.pid:
            return
        status = 0
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            self.capture.write(2, describe(error))
            status = 1
        os._exit(status)

    def _execute(self, operation: str, source: str) -> None:
        cell = Cell(operation, Output(operation, self.channel.send, self._spool, self.flusher))
        if self.cell is not None:
            self._late_output += self.cell.output.late_dropped
        self.cell = cell
        for stream in self._streams:
            stream.reopen()
        self.context.run(ORIGIN.set, cell)
        ORIGIN.set(cell)
        result: str | None = None
        failure: BaseException | None = None
        self.interrupts.begin(operation)
        try:
            value = self._evaluate(self.space.compile(operation, source))
            result = self.context.run(self._present, cell, value)
        except BaseException as error:
            failure = error
            error.__traceback__ = skip_ours(error.__traceback__)
        try:
            if "matplotlib.pyplot" in sys.modules and os.getpid() == self.pid:
                self.context.run(self._artifacts(cell).add_figures)
        except BaseException as error:
            failure = failure or error
        finally:
            self.interrupts.end()
        self._leave_if_forked(failure)
        self._complete(cell, result, failure)

    def _evaluate(self, program: Program) -> Any:
        if program.awaits:
            return self.loops.run_on_loop(self._await(program))
        return self.context.run(self._run, program)

    def _run(self, program: Program) -> Any:
        self.interrupts.release()
        if program.body is not None:
            exec(program.body, self.space.names)
        if program.tail is not None:
            return eval(program.tail, self.space.names)
        return _NOTHING

    async def _await(self, program: Program) -> Any:
        self.interrupts.release()
        value = _NOTHING
        for code in (program.body, program.tail):
            if code is not None:
                value = eval(code, self.space.names)
                if code.co_flags & COROUTINE:
                    value = await value
        return value if program.tail is not None else _NOTHING

    def _present(self, cell: Cell, value: Any) -> str | None:
        """Show the value that a cell ends with."""
        text = None if value is _NOTHING else self._show(value)
        if text is not None and is_rich(value):
            self._artifacts(cell).add_value(value)
        return text

    def _artifacts(self, cell: Cell) -> Artifacts:
        if cell.artifacts is None:
            cell.artifacts = Artifacts(
                cell.id, self.channel.send, lambda text: self.capture.write(2, text)
            )
        made: Artifacts = cell.artifacts
        return made

    def _show_figures(self) -> None:
        cell = ORIGIN.get()
        if cell is not None and cell.running and not self.capture.forked:
            self._artifacts(cell).add_figures()

    def _show(self, value: Any) -> str | None:
        """Give a final value to the display hook; return its text unless it was taken."""
        if sys.displayhook != self._display:
            sys.displayhook(value)
            return None
        if value is None:
            return None
        setattr(builtins, "_", value)
        try:
            return repr(value)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            return f"<{type(value).__name__} object; its repr raised {type(error).__name__}>"

    def _display(self, value: Any) -> None:
        """sys.displayhook for code that calls it itself: print the repr."""
        if value is not None:
            setattr(builtins, "_", value)
            print(repr(value))

    def _complete(self, cell: Cell, result: str | None, failure: BaseException | None) -> None:
        status, text = self._outcome(cell, failure)
        self.interrupts.install()
        self.loops.restore()
        cell.running = False
        if self._requests is not None:
            self._requests.end(cell)
        if cell.yielded and text is not None:
            self.context.run(self.capture.write, 2, text)
            text = None
        added, removed = self.space.changes()
        if added or removed:
            self._send_names(cell.id, added, removed)
        output, dropped = cell.output.finish(result)
        self._unclaim()
        self.channel.send(
            {
                "kind": "completed",
                "id": cell.id,
                "result": {
                    "kind": "cell",
                    "status": status,
                    "output": output,
                    "truncated_bytes": dropped,
                    "error": text,
                },
            }
        )

    def _outcome(self, cell: Cell, failure: BaseException | None) -> tuple[str, str | None]:
        if failure is None:
            return ("yielded" if cell.yielded else "ok"), None
        interrupted = isinstance(failure, KeyboardInterrupt) or type(failure).__name__ == "CancelledError"
        if cell.yielded:
            ended_by_wait = type(failure).__name__ in ("Yielded", "CancelledError")
            return "yielded", None if ended_by_wait else describe(failure)
        text = describe(failure)
        keep_for_debugger(failure)
        return ("interrupted" if interrupted and self.interrupts.taken else "error"), text

    def _send_names(self, operation: str, added: list[str], removed: list[str]) -> None:
        added = _bounded(added, MAX_NAMES)
        removed = _bounded(removed, MAX_NAMES - len(added))
        self.channel.send({"kind": "names", "id": operation, "added": added, "removed": removed})

    def _spool(self, operation: str) -> Any:
        from reeve_worker.spool import Spool

        try:
            return Spool(f"{self.directory}/spool-{operation}")
        except OSError as error:
            os.write(2, f"reeve worker: open spool: {error}\n".encode())
            return None
