"""Cells mean what Python means: doctests of the standard library, run as cells (CP-030)."""

import doctest
import importlib
import re
import unittest
import warnings

from tests.support import Host, Result

MODULES = (
    "ast bisect bz2 calendar collections colorsys contextlib copy ctypes dataclasses datetime decimal difflib "
    "doctest enum fileinput fractions functools glob graphlib hashlib heapq html ipaddress itertools json "
    "json.encoder json.decoder keyword linecache locale math operator pickle pickletools pprint queue random re "
    "secrets shlex smtplib statistics string struct textwrap threading typing types turtle uuid weakref zipfile "
    "http.cookies random http.cookiejar email.utils urllib.parse _pydecimal cmd code"
).split()
REQUIRED_MODULES = 15
REQUIRED_RATE = 0.98

# What differs by design is left out: cells show the last expression only, and run in
# __main__ instead of in the module's own namespace.
NOT_ABOUT_CELLS = re.compile(r"__main__|__name__|__file__")


def outcome(result: Result) -> tuple[str, str | None]:
    """What doctest would see: printed text and value, and the exception's last line."""
    got = result.text("stdout")
    if result.value is not None:
        got += result.value + "\n"
    message = None
    if result.error is not None:
        message = result.error.rstrip("\n")
        start = max((m.start() for m in re.finditer(r"^[A-Za-z_][\w.]*(?::|$)", message, re.M)), default=0)
        message = message[start:] + "\n"
    return got, message


class Doctests(unittest.TestCase):
    """Each example of each docstring is one cell."""

    def check(self, host: Host, example: doctest.Example) -> str:
        """Run one example; return "" or what differed."""
        flags = sum(flag for flag, on in example.options.items() if on)
        got, message = outcome(host.run(example.source))
        checker = doctest.OutputChecker()
        if example.exc_msg is not None:
            if message is None:
                return f"no exception, but {got!r}"
            wanted, had = example.exc_msg, message
            if flags & doctest.IGNORE_EXCEPTION_DETAIL:
                wanted, had = (text.partition(":")[0].rpartition(".")[2] for text in (wanted, had))
            same = checker.check_output(wanted, had, flags)
            # A record has the exception's qualified name, a traceback of doctest's too.
            return "" if same else f"{had!r} instead of {wanted!r}"
        if message is not None:
            return f"exception {message!r}"
        return "" if checker.check_output(example.want, got, flags) else f"{got!r} instead of {example.want!r}"

    def test_standard_library(self) -> None:
        """At least 98 % of the examples of at least 15 modules come out as in Python. [CP-030 CP-031]"""
        examples = good = 0
        used: set[str] = set()
        wrong: list[str] = []
        for name in dict.fromkeys(MODULES):
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecated attributes that the finder touches
                tests = [t for t in doctest.DocTestFinder(exclude_empty=True).find(module, name) if t.examples]
            tests = [t for t in tests if not NOT_ABOUT_CELLS.search(t.docstring or "")]
            if not tests:
                continue
            reference = doctest.DocTestRunner(verbose=False)
            host = Host()
            try:
                for test in tests:
                    # An example that plain Python does not pass either says nothing about cells.
                    plain = doctest.DocTest(test.examples, dict(test.globs), test.name, None, None, None)
                    if reference.run(plain, out=lambda text: None, clear_globs=False).failed:
                        continue
                    host.run(f"globals().clear(); import {name}; globals().update(vars(__import__('sys').modules[{name!r}])); __name__ = '__main__'")
                    for example in test.examples:
                        if example.options.get(doctest.SKIP):
                            continue
                        examples += 1
                        difference = self.check(host, example)
                        if difference:
                            wrong.append(f"{test.name}: {example.source!r}: {difference}")
                        else:
                            good += 1
                            used.add(name)
            finally:
                host.close()
        told = "\n".join(w[:300] for w in wrong)
        self.assertGreaterEqual(len(used), REQUIRED_MODULES)
        self.assertGreaterEqual(good / examples, REQUIRED_RATE, f"{good} of {examples}\n{told}")
