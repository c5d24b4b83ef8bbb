"""Rich results: artifacts of values and of figures."""

import base64
import hashlib
import os
from typing import Any

from tests.support import Result, WorkerTest

PNG = b"\x89PNG\r\n\x1a\n"

# Stands in where matplotlib is not installed: the calls that the worker makes, no more.
STAND_IN = '''
class Figure:
    def __init__(self, number): self.number = number
    def savefig(self, file, format, bbox_inches): file.write(b"\\x89PNG\\r\\n\\x1a\\n" + bytes([self.number % 256]))
_open = {}
def get_fignums(): return sorted(_open)
def figure(number=None):
    number = number or max(_open, default=0) + 1
    return _open.setdefault(number, Figure(number))
def close(figure): _open.pop(figure.number)
def show(): raise SystemExit("a window")
'''


def assembled(result: Result) -> list[tuple[str, bytes]]:
    """The artifacts of a cell, their parts joined and checked."""
    made: list[tuple[str, bytes]] = []
    parts: list[dict[str, Any]] = []
    for frame in result.artifacts:
        assert frame["index"] == len(parts), frame["index"]
        parts.append(frame)
        if frame["last"]:
            data = b"".join(base64.b64decode(p["data"]) for p in parts)
            assert len({p["artifact_id"] for p in parts}) == 1
            assert len(data) == frame["size"] and hashlib.sha256(data).hexdigest() == frame["sha256"]
            made.append((frame["mime"], data))
            parts = []
    assert not parts
    return made


class Rich(WorkerTest):
    """Values with more forms than text."""

    def test_forms(self) -> None:
        """Every form becomes an artifact; the record stays the plain repr. [CP-035 CP-144]"""
        result = self.ok(
            "class Both:\n"
            "    def _repr_png_(self): return b'\\x89PNG'\n"
            "    def _repr_svg_(self): return '<svg/>'\n"
            "    def _repr_html_(self): return '<b>é</b>', {'meta': 1}\n"
            "    def _repr_markdown_(self): return None\n"
            "    def __repr__(self): return '<Both>'\nBoth()"
        )
        self.assertEqual(result.records, [("result", "<Both>")])
        expected = [("image/png", b"\x89PNG"), ("image/svg+xml", b"<svg/>"), ("text/html", "<b>é</b>".encode())]
        self.assertEqual(assembled(result), expected)

    def test_parts(self) -> None:
        """A large artifact comes in parts of at most 512 KiB. [CP-144]"""
        result = self.ok("class Big:\n    def _repr_png_(self): return bytes(range(256)) * 6000\nBig()")
        self.assertEqual(assembled(result), [("image/png", bytes(range(256)) * 6000)])
        self.assertEqual(len(result.artifacts), 3)

    def test_cap(self) -> None:
        """Beyond 8 MiB nothing is sent, and that is said. [CP-035]"""
        result = self.ok("class Big:\n    def _repr_png_(self): return bytes((8 << 20) + 1)\nBig()")
        self.assertEqual(result.artifacts, [])
        self.assertIn("over the limit of 8388608", result.text("stderr"))

    def test_form_that_raises(self) -> None:
        """A form that fails is said and costs nothing else. [CP-033 CP-035]"""
        result = self.ok("class Bad:\n    def _repr_html_(self): raise ValueError\n    def __repr__(s): return 'bad'\nBad()")
        self.assertEqual((result.artifacts, result.value), ([], "bad"))
        self.assertIn("_repr_html_ of Bad raised ValueError", result.text("stderr"))

    def test_class_is_no_value_of_itself(self) -> None:
        """A class with such methods, shown itself, has only its repr. [CP-035]"""
        self.assertEqual(self.ok("class C:\n    def _repr_html_(self): return 'x'\nC").artifacts, [])


class Figures(WorkerTest):
    """Plots of matplotlib."""

    def setUp(self) -> None:
        super().setUp()
        if self.host.run("import matplotlib.pyplot").status != "ok":
            os.mkdir(os.path.join(self.host.dir, "matplotlib"))
            for name, text in (("__init__.py", ""), ("pyplot.py", STAND_IN)):
                with open(os.path.join(self.host.dir, "matplotlib", name), "w", encoding="ascii") as file:
                    file.write(text)
            self.ok("import importlib; importlib.invalidate_caches()")
        self.ok("from matplotlib import pyplot as plt")

    def test_open_figures_become_pictures(self) -> None:
        """Figures open at the end of a cell are sent and closed; the backend has no window. [CP-144]"""
        made = assembled(self.ok("import os\nf, g = plt.figure(), plt.figure()"))
        self.assertEqual([mime for mime, _ in made], ["image/png"] * 2)
        self.assertTrue(all(data.startswith(PNG) for _, data in made))
        self.assertEqual(self.ok("plt.get_fignums(), os.environ['MPLBACKEND']").value, "([], 'agg')")

    def test_loop_of_plots(self) -> None:
        """show() in a loop holds one figure at a time. [CP-144]"""
        result = self.ok("most = 0\nfor n in range(30):\n    f = plt.figure(); plt.show(); most = max(most, len(plt.get_fignums()))\nmost")
        self.assertEqual((result.value, len(assembled(result))), ("0", 30))

    def test_figures_of_a_failed_cell(self) -> None:
        """A cell that fails leaves no figure for the next one. [CP-144]"""
        self.assertEqual(len(self.host.run("f = plt.figure()\n1 / 0").artifacts), 1)
        self.assertEqual(self.ok("1").artifacts, [])
