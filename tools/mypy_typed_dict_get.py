"""A plugin of mypy: ``obj.get("key")`` with a key that the TypedDict lacks is an error, as
``obj["key"]`` is.

mypy takes such a ``get`` for a key that a subtype may have. The objects of the API have no
subtypes: a key that their type lacks is mistyped.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.errorcodes import TYPEDDICT_ITEM
from mypy.plugin import MethodContext, Plugin
from mypy.plugins.default import typed_dict_get_callback
from mypy.typeops import try_getting_str_literals
from mypy.types import Type, TypedDictType


def check_key(ctx: MethodContext) -> Type:
    if isinstance(ctx.type, TypedDictType) and ctx.args and ctx.args[0]:
        for key in try_getting_str_literals(ctx.args[0][0], ctx.arg_types[0][0]) or ():
            if key not in ctx.type.items:
                name = ctx.type.fallback.type.name
                ctx.api.fail(
                    f'TypedDict "{name}" has no key "{key}"', ctx.context, code=TYPEDDICT_ITEM
                )
    return typed_dict_get_callback(ctx)


class TypedDictGetPlugin(Plugin):
    """A hook on the ``get`` of TypedDicts, which mypy looks up as a method of Mapping."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return check_key if fullname == "typing.Mapping.get" else None


def plugin(version: str) -> type[Plugin]:
    return TypedDictGetPlugin
