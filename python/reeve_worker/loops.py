"""The one event loop of a session, made when asyncio is first needed.

Cells that await run on it; between cells it keeps running, so that background tasks
live on. Cells that do not await run outside of it, so asyncio.run() works in them as
in any script; asyncio.create_task() in them uses this loop.
"""

from __future__ import annotations

import sys

from reeve_worker.interrupts import Interrupts

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, Coroutine
    from types import ModuleType

class Loops:
    """Owns the loop; only the main thread calls it, but for wake."""

    def __init__(self, interrupts: Interrupts, context: Any) -> None:
        self._interrupts = interrupts
        self._context = context
        self._asyncio: Any = None
        self._idle = False
        self._task: Any = None
        self.loop: Any = None

    def adopt(self, asyncio: ModuleType) -> None:
        """Prepare asyncio, just loaded, for cells that do not await."""
        self._asyncio = asyncio
        self._interrupts.callback_code = asyncio.events.Handle._run.__code__
        plain_create, plain_run = asyncio.create_task, asyncio.run
        owner = self

        def create_task(coro: Any, **options: Any) -> Any:
            if asyncio._get_running_loop() is None and owner._interrupts.on_main():
                return owner.ensure().create_task(coro, **options)
            return plain_create(coro, **options)

        def run(main: Any, **options: Any) -> Any:
            if asyncio._get_running_loop() is not None:
                if asyncio.iscoroutine(main):
                    main.close()
                raise RuntimeError("asyncio.run() cannot be called while this cell awaits: write `await main()`")
            try:
                return plain_run(main, **options)
            finally:
                if owner.loop is not None and owner._interrupts.on_main():
                    asyncio.set_event_loop(owner.loop)

        for name, function, plain in (("create_task", create_task, plain_create), ("run", run, plain_run)):
            function.__doc__, function.__module__ = plain.__doc__, plain.__module__
            function.__qualname__, function.__wrapped__ = name, plain  # type: ignore[attr-defined]
            setattr(asyncio, name, function)

    def ensure(self) -> Any:
        """Return the loop, making one if there is none or a cell has closed it."""
        if self.loop is None or self.loop.is_closed():
            if self._asyncio is None:
                __import__("asyncio")
                if self._asyncio is None:
                    self.adopt(sys.modules["asyncio"])
            self.loop = sys.modules["asyncio"].new_event_loop()
        self._asyncio.set_event_loop(self.loop)
        return self.loop

    def restore(self) -> None:
        """Make the loop the current one again, whatever a cell set."""
        if self.loop is not None:
            self.ensure()

    def run_on_loop(self, coro: Coroutine[Any, Any, Any]) -> Any:
        """Run the coroutine of a cell to its end and return or raise what it does.

        An interrupt or an exit that comes out of somebody else's callback does not
        end the cell by itself: the cell's task is cancelled, or runs on.
        """
        loop = self.ensure()
        task = self._task = loop.create_task(coro, context=self._context)
        self._interrupts.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        self._interrupts.at_next_await = loop.call_soon_threadsafe
        try:
            while True:
                try:
                    return loop.run_until_complete(task)
                except BaseException as error:
                    if task.done() or loop.is_closed():
                        raise  # by the task itself, whose traceback can be had only once
                    if isinstance(error, KeyboardInterrupt):
                        task.cancel()
                    elif not isinstance(error, (SystemExit, RuntimeError)):
                        raise
        finally:
            self._interrupts.cancel = self._interrupts.at_next_await = None

    def stop_cell(self) -> None:
        """Cancel the task of the running cell unless the caller is that task."""
        cancel = self._interrupts.cancel
        if cancel is not None and self._asyncio.current_task() is not self._task:
            cancel()

    def idle(self, has_work: Any) -> None:
        """Run background tasks until wake is called; has_work tells of work already there."""
        self._idle = True
        try:
            if not has_work():
                self.loop.run_forever()
        finally:
            self._idle = False

    def wake(self) -> None:
        """End idle; called by the reader thread after it has queued work."""
        loop = self.loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(self._stop_if_idle)
            except RuntimeError:
                pass  # a cell closed the loop; then nobody idles in it

    def _stop_if_idle(self) -> None:
        if self._idle:
            self.loop.stop()
