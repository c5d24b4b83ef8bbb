"""What happens at an import, first in line before the standard finders.

A name outside the standard library brings in site, so that installed packages are
found although the interpreter started without them (-S). A few standard modules get
a finishing touch once they are loaded. klbr is another name of the SDK.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing itself would cost a third of the start
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence
    from types import ModuleType
    from importlib.machinery import ModuleSpec
    from importlib.machinery import PathFinder
else:
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import PathFinder


_OURS = frozenset(("reeve", "reeve_worker"))
_ALIASES = {"klbr": "reeve"}

if TYPE_CHECKING:
    Touch = Callable[[ModuleType], None]


def _site_packages() -> None:
    """Do what the interpreter skipped at start: site-packages, .pth files, user site."""
    import site

    site.main()
    in_venv = sys.prefix != sys.base_prefix
    if not in_venv and os.getuid() == os.geteuid():
        user = site.getusersitepackages()
        if os.path.isdir(user):
            site.addsitedir(user)


class _Alias:
    """Loads a module under one name by importing it under another."""

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself, so that both names mean one object."""
        __import__(self._target)
        module = sys.modules[self._target]
        self._kept = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Undo what the import system wrote on a module that was loaded before."""
        module.__spec__ = self._kept


class _Skill:
    """Loads a module that is nothing but its documentation."""

    def __init__(self, body: str) -> None:
        self._body = body

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave the making of the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its body."""
        module.__doc__ = self._body


class Finder:
    """A meta path entry; it finds only aliases and otherwise prepares the ground."""

    def __init__(self) -> None:
        self._touches: dict[str, Touch] = {}
        self._skills: dict[str, str] = {}
        self._actions: dict[str, Callable[[], None]] = {}
        self._site_done = False

    def offer_skills(self, bodies: dict[str, str]) -> None:
        """Make skills importable below reeve.skills; bodies are by skill id."""
        for skill, body in bodies.items():
            self._skills["reeve.skills." + skill.replace("-", "_")] = body

    def before(self, name: str, action: Callable[[], None]) -> None:
        """Call action when module name is first looked for."""
        self._actions[name] = action

    def after(self, name: str, touch: Touch) -> None:
        """Call touch with module name once it is loaded; at once if it already is."""
        module = sys.modules.get(name)
        if module is not None:
            touch(module)
        else:
            self._touches[name] = touch

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Take part in one import; None leaves the search to the standard finders."""
        top = name.partition(".")[0]
        if top in _ALIASES:
            loader: Any = _Alias(_ALIASES[top] + name[len(top) :])
            return ModuleSpec(name, loader)
        if name in self._skills:
            skill: Any = _Skill(self._skills[name])
            return ModuleSpec(name, skill)
        if path is None and not self._site_done and top not in _OURS and top not in sys.stdlib_module_names:
            self._site_done = True
            _site_packages()
        action = self._actions.pop(name, None)
        if action is not None:
            action()
        touch = self._touches.pop(name, None)
        if touch is None:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            self._touches[name] = touch
            return None
        _touched(spec.loader, touch)
        return spec


def _touched(loader: Any, touch: Touch) -> None:
    plain = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        plain(module)
        touch(module)

    loader.exec_module = exec_module
