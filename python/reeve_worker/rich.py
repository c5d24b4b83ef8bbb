"""Pictures and documents that a final value, or a plot, can make of itself (CP-035, CP-144).

Each becomes one artifact: bytes in parts, named by their digest. A value's own method
that fails is said on the cell's stderr and costs nothing else.
"""

from __future__ import annotations

import sys

from reeve_worker.messages import MAX_ARTIFACT, MAX_PART

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, Callable

    Say = Callable[[str], None]
    Send = Callable[[dict[str, Any]], None]

_FORMS = (
    ("_repr_png_", "image/png"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
)


def is_rich(value: Any) -> bool:
    """Whether the type of value has a form besides its text. Cheap: every value is asked."""
    kind = type(value)
    return (
        hasattr(kind, "_repr_html_")
        or hasattr(kind, "_repr_png_")
        or hasattr(kind, "_repr_svg_")
        or hasattr(kind, "_repr_markdown_")
    )


class Artifacts:
    """The artifacts of one cell, in the order in which they are made."""

    def __init__(self, cell: str, send: Send, say: Say) -> None:
        self._cell = cell
        self._send = send
        self._say = say
        self._count = 0

    def add_value(self, value: Any) -> None:
        """Send every form that value has."""
        for name, mime in _FORMS:
            method = getattr(type(value), name, None)
            if method is None:
                continue
            try:
                made = getattr(value, name)()
                if isinstance(made, tuple):  # the data and its metadata, as IPython allows
                    made = made[0]
                if made is None:
                    continue
                data = made.encode("utf-8", "backslashreplace") if isinstance(made, str) else bytes(made)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                self._say(f"[{name} of {type(value).__name__} raised {type(error).__name__}]\n")
                continue
            self.add(mime, data)

    def add_figures(self) -> None:
        """Send every open matplotlib figure as a picture and close it."""
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        import io

        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            picture = io.BytesIO()
            try:
                figure.savefig(picture, format="png", bbox_inches="tight")
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                self._say(f"[figure {number} could not be drawn: {type(error).__name__}: {error!s:.200}]\n")
            else:
                self.add("image/png", picture.getvalue())
            finally:
                pyplot.close(figure)

    def add(self, mime: str, data: bytes) -> None:
        """Send one artifact, unless it is too large."""
        if len(data) > MAX_ARTIFACT:
            self._say(f"[{mime} of {len(data)} bytes is over the limit of {MAX_ARTIFACT} and left out]\n")
            return
        import binascii
        import hashlib

        digest = hashlib.sha256(data).hexdigest()
        self._count += 1
        for index, start in enumerate(range(0, len(data) or 1, MAX_PART)):
            part = data[start : start + MAX_PART]
            self._send(
                {
                    "kind": "artifact",
                    "id": self._cell,
                    "artifact_id": f"a-{self._count}",
                    "mime": mime,
                    "size": len(data),
                    "sha256": digest,
                    "index": index,
                    "last": start + MAX_PART >= len(data),
                    "data": binascii.b2a_base64(part, newline=False).decode(),
                }
            )


def prepare_matplotlib() -> None:
    """Choose a backend without windows, before matplotlib is imported."""
    import os

    os.environ.setdefault("MPLBACKEND", "agg")


def prepare_pyplot(pyplot: Any, show: Callable[[], None]) -> None:
    """Make pyplot.show() send and close the figures there are; a loop of plots then
    holds one at a time."""

    def show_figures(*_args: Any, **_options: Any) -> None:
        """Send all open figures with the result of this cell and close them."""
        show()

    pyplot.show = show_figures
