"""The start of a command is short: imports that happen at their first use, named tuples and digests
that cost little.

``with lazy_imports():`` around ``from package import module`` statements binds each name to a
stand-in, which imports the module when one of its attributes is first read, and takes its place in
the importing module. Type checkers, editors and import contracts see ordinary imports. Only modules
can be imported so, not what is in them.

``NamedTuple`` is typing's without its checks of the types of fields, which type checkers make
better, and with methods that all such classes share. It is made in a tenth of the time, and ``get``
loads nearly eighty: modules that every command loads take it from here.
"""

from __future__ import annotations

import builtins
import sys
from _thread import RLock
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

_patching = RLock()  # one thread at a time may have its own import function in place


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    # An attribute that is an item of a tuple, written in C.
    Item = type(namedtuple("Single", "item").item)

    class Fields(tuple):
        """The methods of all named tuples (those of ``collections.namedtuple``)."""

        __slots__ = ()

        @classmethod
        def _make(cls, values: Iterable[Any]) -> Any:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **values: Any) -> Any:
            made = self._make(map(values.pop, self._fields, self))
            if values:  # as from Python 3.13 on; a ValueError before
                raise TypeError(f"Got unexpected field names: {list(values)!r}")
            return made

        __replace__ = _replace

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            items = zip(self._fields, self, strict=True)
            fields = ", ".join(f"{name}={value!r}" for name, value in items)
            return f"{self.__class__.__name__}({fields})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

    @cache
    def constructor(size: int) -> CodeType:
        """Return the code of ``__new__`` of tuples of a size, as compiling it for each class would
        take most time."""
        fields = "".join(f"_{number}," for number in range(size))
        new = eval(f"lambda _cls, {fields}: _new(_cls, ({fields}))")
        return new.__code__

    class NamedTupleMeta(type):
        """The metaclass of ``NamedTuple``: makes a named tuple of the fields and methods of a class
        body."""

        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in fields if field in namespace}
            new = FunctionType(
                constructor(len(fields)).replace(co_varnames=("_cls", *fields)),
                {"_new": tuple.__new__},
                "__new__",
                tuple(defaults.values()),
            )
            new.__qualname__ = f"{name}.__new__"
            members = {
                "__doc__": f"{name}({', '.join(fields)})",
                **namespace,
                "__slots__": (),
                "__new__": new,
                "_fields": fields,
                "__match_args__": fields,
                "_field_defaults": defaults,
            }
            for number, field in enumerate(fields):
                members[field] = Item(number, f"Alias for field number {number}")
            return type(name, (Fields,), members)

    class NamedTuple(metaclass=NamedTupleMeta):
        """Base of classes whose annotated names are the fields of a tuple."""


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
