"""The start of a command is short: imports that happen at their first use, and a cheap digest.

``with lazy_imports():`` around ``from package import module`` statements binds each name to a
stand-in, which imports the module when one of its attributes is first read, and takes its place in
the importing module. Type checkers, editors and import contracts see ordinary imports. Only modules
can be imported so, not what is in them.
"""

from __future__ import annotations

import builtins
import sys
from _thread import RLock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_patching = RLock()  # one thread at a time may have its own import function in place


def blake2b(data: bytes, size: int) -> bytes:
    """Return the BLAKE2b digest of so many bytes, which is the same with every Python."""
    try:  # hashlib loads OpenSSL first, which takes 2 ms and 2 MB; the module random does likewise
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return blake2b(data, digest_size=size).digest()


class LazyModule(ModuleType):
    """A module that is imported when an attribute of it is first read.

    :param importer: the global names of the importing module; the stand-in is replaced there.
    """

    def __init__(self, name: str, importer: dict[str, Any]) -> None:
        super().__init__(name)
        self.__dict__["_importer"] = importer

    def __getattr__(self, attribute: str) -> Any:
        module = load(self.__name__)
        importer = self.__dict__["_importer"]
        names = [name for name, value in importer.items() if value is self]
        for name in names:
            importer[name] = module
        return getattr(module, attribute)


def load(name: str) -> ModuleType:
    """Import a module by its name; importlib, which does so too, would itself be imported for
    that."""
    __import__(name)
    return sys.modules[name]


class _LazyNames:
    """Stand-in for the package of a ``from package import module`` statement."""

    def __init__(self, package: str, importer: dict[str, Any]) -> None:
        self._package = package
        self._importer = importer

    def __getattr__(self, name: str) -> ModuleType:
        full_name = f"{self._package}.{name}"
        module = sys.modules.get(full_name)
        if module is None or getattr(module.__spec__, "_initializing", False):
            return LazyModule(full_name, self._importer)  # another thread may be importing it
        return module


@contextmanager
def lazy_imports() -> Iterator[None]:
    """Make the ``from package import module`` statements of the block lazy; those of other modules
    are as usual.

    Raises ImportError for any other import in the block.
    """
    importer = sys._getframe(2).f_globals

    def import_later(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if globals is not importer:
            return import_now(name, globals, locals, fromlist, level)
        if not fromlist or level:
            raise ImportError(
                f"lazy_imports: only `from package import module` can be lazy, not {name!r}"
            )
        return _LazyNames(name, importer)

    with _patching:
        import_now = builtins.__import__
        builtins.__import__ = import_later
        try:
            yield
        finally:
            builtins.__import__ = import_now
