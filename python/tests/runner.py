"""Runs the suite and prints one JSON object a line per test, for the Go side.

A test names the requirements it shows in its docstring, as [CP-005 CP-006].
"""

import io
import json
import os
import re
import sys
import traceback
import unittest
from types import TracebackType
from typing import Any

ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class Report(unittest.TestResult):
    """Prints every test once, when it stops, with all that went wrong in it."""

    def __init__(self, out: io.TextIOBase) -> None:
        super().__init__()
        self._out = out
        self._wrong: list[str] = []
        self._skipped = ""

    def startTest(self, test: unittest.TestCase) -> None:
        """Forget the test before."""
        super().startTest(test)
        self._wrong, self._skipped = [], ""

    def _failed(self, test: Any, err: ExcInfo) -> None:
        text = "".join(traceback.format_exception(*err))
        if isinstance(test, unittest.TestCase) and test.id().startswith("unittest."):
            self._line(test.id(), "", "failed", text)  # a module that cannot be imported
        self._wrong.append(text)

    def addError(self, test: Any, err: Any) -> None:
        """Note an error, also of a class or module."""
        super().addError(test, err)
        self._failed(test, err)
        if not isinstance(test, unittest.TestCase):
            self._line(str(test), "", "failed", self._wrong[-1])

    def addFailure(self, test: Any, err: Any) -> None:
        """Note a failure."""
        super().addFailure(test, err)
        self._failed(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        """Note a failed subtest."""
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed(test, err)
            self._wrong[-1] = f"{subtest}\n{self._wrong[-1]}"

    def addSkip(self, test: Any, reason: str) -> None:
        """Note a skip."""
        super().addSkip(test, reason)
        self._skipped = reason

    def stopTest(self, test: unittest.TestCase) -> None:
        """Print the test."""
        super().stopTest(test)
        if test.id().startswith("unittest."):
            return
        cited = re.findall(r"\[((?:[A-Z]{2}-\d{3}[a-z]? ?)+)\]", getattr(test, "_testMethodDoc", None) or "")
        status = "failed" if self._wrong else "skipped" if self._skipped else "ok"
        text = "\n".join(self._wrong) or self._skipped
        self._line(test.id().removeprefix("tests."), " ".join(cited), status, text)

    def _line(self, identity: str, cited: str, status: str, text: str) -> None:
        line = {"ID": identity, "Requirements": cited, "Status": status, "Text": text}
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()


def main() -> None:
    """Run all tests, or those that the arguments name."""
    here = os.path.dirname(os.path.abspath(__file__))
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a test prints is not part of the report
    loader = unittest.TestLoader()
    if sys.argv[1:]:
        suite = loader.loadTestsFromNames(sys.argv[1:])
    else:
        suite = loader.discover(here, top_level_dir=os.path.dirname(here))
    suite.run(Report(out))


if __name__ == "__main__":
    main()
