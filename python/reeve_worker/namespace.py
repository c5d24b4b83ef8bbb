"""The namespace of a session: its __main__ module, and how source becomes code in it.

Source is compiled as a module with top-level await allowed and with the future
features that earlier cells asked for; a final expression is split off, because its
value is shown. Sources stay known to linecache for tracebacks and inspect.
"""

from __future__ import annotations

import _ast
import sys

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, Callable
    from types import CodeType, ModuleType

_ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without importing ast
_TOP_LEVEL_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
COROUTINE = 0x80  # inspect.CO_COROUTINE
_MAX_SOURCES = 8 << 20  # characters of cell source kept for tracebacks
_DEFINITIONS = ("FunctionDef", "AsyncFunctionDef", "ClassDef", "Import", "ImportFrom")


class Program:
    """A compiled cell: its statements, and its final expression if it has one."""

    def __init__(self, body: CodeType | None, tail: CodeType | None) -> None:
        self.body = body
        self.tail = tail
        flags = (body.co_flags if body else 0) | (tail.co_flags if tail else 0)
        self.awaits = bool(flags & COROUTINE)


class _Main(type(sys)):  # type: ignore[misc]
    """The __main__ of cells. It has a file only for multiprocessing's spawn."""

    definitions: "Callable[[], str]"  # set on the class, so that the names stay the cells' own

    @property
    def __file__(self) -> str:
        """Where a spawned child finds what cells have defined (Namespace.definitions)."""
        caller = sys._getframe(1).f_globals.get("__name__")
        if caller != "multiprocessing.spawn":
            raise AttributeError("module '__main__' has no attribute '__file__'")
        return _Main.definitions()


class Namespace:
    """Names, future flags and sources that persist from cell to cell."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._flags = 0
        self._sources: dict[str, str] = {}
        self._size = 0
        self._known: set[str] = set()
        _Main.definitions = self.definitions
        self.module = _Main("__main__")
        self.names: dict[str, Any] = self.module.__dict__
        self.names["__builtins__"] = sys.modules["builtins"]

    def compile(self, cell: str, source: str) -> Program:
        """Compile the source of a cell; raises what compile() raises."""
        filename = f"<cell {cell}>"
        self._remember(filename, source)
        flags = self._flags | _TOP_LEVEL_AWAIT
        tree: Any = compile(source, filename, "exec", flags | _ONLY_AST, True)
        if "__future__" in source:
            flags |= self._future(tree)
        body = tail = None
        if tree.body and type(tree.body[-1]) is _ast.Expr:
            last = tree.body.pop()
            tail = compile(_ast.Expression(last.value), filename, "eval", flags, True)
        if tree.body:
            body = compile(tree, filename, "exec", flags, True)
        self._flags = flags & ~_TOP_LEVEL_AWAIT
        return Program(body, tail)

    def _future(self, tree: Any) -> int:
        import __future__

        flags = 0
        for node in tree.body:
            if type(node) is _ast.ImportFrom and node.module == "__future__":
                for alias in node.names:
                    feature = getattr(__future__, alias.name, None)
                    flags |= getattr(feature, "compiler_flag", 0)
        return flags

    def _remember(self, filename: str, source: str) -> None:
        self._sources[filename] = source
        self._size += len(source)
        while self._size > _MAX_SOURCES and len(self._sources) > 1:
            oldest = next(iter(self._sources))
            self._size -= len(self._sources.pop(oldest))
            linecache = sys.modules.get("linecache")
            if linecache is not None:
                linecache.cache.pop(oldest, None)
        linecache = sys.modules.get("linecache")
        if linecache is not None:
            self._show(linecache, filename, source)

    def _show(self, linecache: Any, filename: str, source: str) -> None:
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)

    def show_sources(self, linecache: ModuleType) -> None:
        """Give linecache, just loaded, the sources of all cells so far."""
        for filename, source in self._sources.items():
            self._show(linecache, filename, source)

    def changes(self) -> tuple[list[str], list[str]]:
        """Names bound and names removed since the last call, dunder names and _ apart."""
        now = {n for n in list(self.names) if type(n) is str and not (n[:2] == "__" and n[-2:] == "__") and n != "_"}
        if now == self._known:
            return [], []
        added, removed = now - self._known, self._known - now
        self._known = now
        return sorted(filter(_fit, added)), sorted(filter(_fit, removed))

    def definitions(self) -> str:
        """Write a module with the definitions of all cells; return its path.

        A child that multiprocessing spawns imports it as its __main__, so functions
        and classes of cells can be sent to it. Statements that only compute are left
        out: running them again in the child would repeat their effects.
        """
        import ast

        chunks = []
        for filename, source in self._sources.items():
            try:
                tree = ast.parse(source)
            except (SyntaxError, ValueError):
                continue
            for node in tree.body:
                if type(node).__name__ in _DEFINITIONS or _constant(node):
                    chunks.append((filename, ast.unparse(node)))
        path = f"{self._directory}/cells_main.py"
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("for _source, _name in (\n")
            for filename, text in chunks:
                file.write(f"    ({text!a}, {filename!a}),\n")
            file.write("):\n    try:\n        exec(compile(_source, _name, 'exec'))\n    except Exception:\n        pass\n")
        return path


def _constant(node: Any) -> bool:
    return type(node) is _ast.Assign and type(node.value) is _ast.Constant


def _fit(name: str) -> bool:
    """Whether a name can be told to the host: one that code can write, and not huge."""
    return name.isidentifier() and len(name) <= 256
