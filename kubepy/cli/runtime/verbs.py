"""The former way to declare a command, until all commands have options classes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from kubepy.cli.runtime import options as shared
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import Command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.infos import Result
from kubepy.cli.runtime.options import Options

Invocation = Any
NOTHING = "Accepted as kubectl does; it means nothing here."


def changed_flag(flag: Flag, **changes: Any) -> Flag:
    flag = copy.copy(flag)
    for name, value in changes.items():
        setattr(flag, name, value)
    return flag



def options_class_of(flags: Sequence[Flag]) -> type[Options]:
    """Return a class of these flags, and of the shared sets that they contain."""
    names = {flag.name for flag in flags}
    bases = [value for value in vars(shared).values() if isinstance(value, type) and issubclass(value, Options)
             and value.flags and value is not shared.GlobalOptions and {flag.name for flag in value.flags} <= names]
    bases = [one for one in bases if not any(one is not other and issubclass(other, one) for other in bases)]

    def flag(self: Any, name: str, default: Any = None) -> Any:
        return next((getattr(self, flag.name) for flag in self.flags if flag.long == name), default)

    methods: dict[str, Any] = {"flag": flag, "output": "", "template": "", "allow_missing_template_keys": True,
                               "show_managed_fields": False, "windows_line_endings": False,
                               "path": property(lambda self: self.line.path),
                               "dash": property(lambda self: self.line.dash),
                               "typed": property(lambda self: self.line.typed)}
    return type("VerbOptions", (*bases, Options), {**methods, **{flag.name: flag for flag in flags}})


def verb(name: str, usage: str, *, flags: Sequence[Flag] = (), examples: str = "", creates: bool = False,
         failed: int = 1) -> Callable[[Callable[[Factory, Any], None]], Command]:
    def decorate(run: Callable[[Factory, Any], None]) -> Command:
        decorated = Command(usage, run, options_class_of(flags), help=(run.__doc__ or "").strip(), examples=examples)
        decorated.creates = creates
        decorated.flag_error_status = failed
        return decorated

    return decorate


def find(factory: Factory, options: Any, **more: Any) -> Result:
    return Builder(factory, options, **more).do()
