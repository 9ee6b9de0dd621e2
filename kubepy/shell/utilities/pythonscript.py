"""The part of Python that small programs in manifests are written in.

A program is read by Python's own ``ast`` and carried out here, node by node: nothing of it is run
by the interpreter of kubepy. Values are numbers, texts, lists, tuples, dicts, truth and None; of
modules there is a little of :data:`MODULES`. Anything else, and a program that takes too long, is
unknown.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any, NoReturn

from kubepy.shell.utility import Execution, Unknown

MOST_STEPS = 20_000
MOST_ITEMS = 10_000  # of a text or a list
LARGEST = 10**100
LARGE_WIDTH = re.compile(r"\d{4}|\*")
TEXT_METHODS = frozenset(
    {
        "count", "endswith", "find", "isdigit", "join", "lower", "lstrip", "replace", "rstrip",
        "split", "splitlines", "startswith", "strip", "title", "upper", "zfill",
    }
)  # fmt: skip
LIST_METHODS = frozenset(
    {"append", "extend", "index", "insert", "pop", "remove", "reverse", "sort"}
)
DICT_METHODS = frozenset({"get", "items", "keys", "pop", "setdefault", "values"})
METHODS: Mapping[type, frozenset[str]] = {
    str: TEXT_METHODS,
    list: LIST_METHODS,
    dict: DICT_METHODS,
}
MODULES = frozenset({"os", "sys", "time"})
OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
UNARY: Mapping[type[ast.AST], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "bool": bool,
    "enumerate": lambda *args: list(enumerate(*args)),
    "float": float,
    "int": int,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "repr": repr,
    "reversed": lambda items: list(items)[::-1],
    "round": round,
    "sorted": sorted,
    "str": str,
    "sum": sum,
    "tuple": tuple,
    "zip": lambda *args: list(zip(*args, strict=False)),
}
PLAIN = (bool, int, float, str, type(None), list, tuple, dict)


class ScriptExit(Exception):
    """The end of a program by ``exit``."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.status = 1
        self.message = ""
        if value is None:
            self.status = 0
        elif isinstance(value, int):
            self.status = value & 0xFF
        else:
            self.message = str(value)


class ScriptError(Exception):
    """An error of the program that it does not catch; its text is the last line of the
    traceback."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class _Break(Exception):
    """The end of a loop."""


class _Continue(Exception):
    """The end of a round of a loop."""


class Printed:
    """The texts that a program prints."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.err: list[str] = []


class PythonScript:
    """One run of a program.

    :ivar first: what it prints at once.
    :ivar last: what it prints after it has slept.
    :ivar slept: the seconds that it sleeps in all.
    """

    def __init__(self, call: Execution, argv: list[str]) -> None:
        self._call = call
        self._argv = argv
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._imported: dict[str, str] = {}
        self._steps = 0
        self._line = 1
        self.first = Printed()
        self.last = Printed()
        self.slept = 0.0

    def run(self, tree: ast.Module) -> None:
        """Carry out the program. Raises ScriptExit, ScriptError, Unknown."""
        self._body(tree.body)

    def print_error(self, text: str) -> None:
        """Print to standard error."""
        self._printed().err.append(text)

    def _printed(self) -> Printed:
        if self.slept > 0:
            return self.last
        return self.first

    # --- statements

    def _body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._count()
            self._line = statement.lineno
            handler = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
            if handler is None:
                _give_up(statement)
            handler(statement)

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise Unknown("a program that goes on and on")

    def _do_pass(self, statement: ast.Pass) -> None:
        """Do nothing."""

    def _do_break(self, statement: ast.Break) -> NoReturn:
        raise _Break

    def _do_continue(self, statement: ast.Continue) -> NoReturn:
        raise _Continue

    def _do_expr(self, statement: ast.Expr) -> None:
        self._value(statement.value)

    def _do_import(self, statement: ast.Import) -> None:
        for alias in statement.names:
            if alias.name not in MODULES:
                raise Unknown(f"import {alias.name}")
            self._imported[alias.asname or alias.name] = alias.name

    def _do_importfrom(self, statement: ast.ImportFrom) -> None:
        if statement.module not in MODULES:
            raise Unknown(f"import {statement.module}")
        for alias in statement.names:
            self._imported[alias.asname or alias.name] = f"{statement.module}.{alias.name}"

    def _do_assign(self, statement: ast.Assign) -> None:
        value = self._value(statement.value)
        for target in statement.targets:
            self._assign(target, value)

    def _do_augassign(self, statement: ast.AugAssign) -> None:
        if not isinstance(statement.target, ast.Name):
            _give_up(statement)
        old = self._name(statement.target.id)
        value = self._combined(statement.op, old, self._value(statement.value))
        self._assign(statement.target, value)

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, (list, tuple)):
            if len(target.elts) != len(value):
                self._fail("ValueError: too many values to unpack")
            for part, item in zip(target.elts, value, strict=True):
                self._assign(part, item)
        elif isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            holder = self._value(target.value)
            if not isinstance(holder, (list, dict)):
                _give_up(target)
            key = self._value(target.slice)
            self._safely(lambda: holder.__setitem__(key, value))
        else:
            _give_up(target)

    def _do_if(self, statement: ast.If) -> None:
        self._body(statement.body if self._value(statement.test) else statement.orelse)

    def _do_while(self, statement: ast.While) -> None:
        while self._value(statement.test):
            self._count()
            if not self._round(statement.body):
                return
        self._body(statement.orelse)

    def _do_for(self, statement: ast.For) -> None:
        for item in self._items(statement.iter):
            self._count()
            self._assign(statement.target, item)
            if not self._round(statement.body):
                return
        self._body(statement.orelse)

    def _round(self, body: list[ast.stmt]) -> bool:
        """Carry out one round of a loop. Return whether the loop goes on."""
        try:
            self._body(body)
        except _Continue:
            return True
        except _Break:
            return False
        return True

    def _do_raise(self, statement: ast.Raise) -> NoReturn:
        error = statement.exc
        arguments: list[Any] = []
        if isinstance(error, ast.Call):
            arguments = [self._value(argument) for argument in error.args]
            error = error.func
        if not isinstance(error, ast.Name):
            _give_up(statement)
        if error.id == "SystemExit":
            raise ScriptExit(arguments[0] if arguments else None)
        message = ", ".join(map(str, arguments))
        self._fail(f"{error.id}: {message}" if message else error.id)

    def _fail(self, message: str) -> NoReturn:
        raise ScriptError(message, self._line)

    # --- expressions

    def _value(self, node: ast.expr) -> Any:
        self._count()
        handler = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if handler is None:
            _give_up(node)
        value = handler(node)
        if isinstance(value, (str, list, tuple, dict)) and len(value) > MOST_ITEMS:
            raise Unknown("a large value")
        if isinstance(value, int) and abs(value) > LARGEST:
            raise Unknown("a large number")
        return value

    def _safely(self, compute: Callable[[], Any]) -> Any:
        """Compute a value; an error of the program ends it."""
        try:
            return compute()
        except KeyError as error:
            self._fail(f"KeyError: {error}")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._fail(f"{type(error).__name__}: {error}")

    def _items(self, node: ast.expr) -> list[Any]:
        value = self._value(node)
        return self._safely(lambda: list(value))  # type: ignore[no-any-return]

    def _of_constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, PLAIN):
            _give_up(node)
        return node.value

    def _of_name(self, node: ast.Name) -> Any:
        return self._name(node.id)

    def _name(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        if name in self._imported:
            return self._of_module(self._imported[name])
        return self._fail(f"NameError: name '{name}' is not defined")

    def _of_module(self, path: str) -> Any:
        """Return a value of a module."""
        if path == "os.environ":
            return dict(self._call.env)
        if path == "sys.argv":
            return list(self._argv)
        raise Unknown(path)

    def _path(self, node: ast.expr) -> str:
        """Return the name of what a module has (``os.environ.get``); "" for another expression."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            holder = self._path(node.value)
            if holder:
                return f"{holder}.{node.attr}"
        return ""

    def _of_attribute(self, node: ast.Attribute) -> Any:
        path = self._path(node)
        if not path:
            _give_up(node)
        return self._of_module(path)

    def _of_list(self, node: ast.List) -> Any:
        return [self._value(item) for item in node.elts]

    def _of_tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._value(item) for item in node.elts)

    def _of_dict(self, node: ast.Dict) -> Any:
        values: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                _give_up(node)
            values[self._value(key)] = self._value(value)
        return values

    def _of_ifexp(self, node: ast.IfExp) -> Any:
        return self._value(node.body if self._value(node.test) else node.orelse)

    def _of_boolop(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)
        value: Any = None
        for part in node.values:
            value = self._value(part)
            if bool(value) != is_and:
                break
        return value

    def _of_unaryop(self, node: ast.UnaryOp) -> Any:
        operation = UNARY.get(type(node.op))
        if operation is None:
            _give_up(node)
        value = self._value(node.operand)
        return self._safely(lambda: operation(value))

    def _of_binop(self, node: ast.BinOp) -> Any:
        return self._combined(node.op, self._value(node.left), self._value(node.right))

    def _combined(self, operation: ast.operator, left: Any, right: Any) -> Any:
        compute = OPERATORS.get(type(operation))
        if compute is None:
            _give_up(operation)
        if isinstance(operation, ast.Mod) and isinstance(left, str):
            _checked(left)
        if isinstance(operation, ast.Mult) and isinstance(left, int) != isinstance(right, int):
            times = left if isinstance(left, int) else right
            if times > MOST_ITEMS:
                raise Unknown("a large value")
        return self._safely(lambda: compute(left, right))

    def _of_compare(self, node: ast.Compare) -> Any:
        left = self._value(node.left)
        for operation, other in zip(node.ops, node.comparators, strict=True):
            right = self._value(other)
            compute = OPERATORS[type(operation)]
            if not self._safely(lambda a=left, b=right, c=compute: c(a, b)):  # type: ignore[misc]
                return False
            left = right
        return True

    def _of_subscript(self, node: ast.Subscript) -> Any:
        holder = self._value(node.value)
        if isinstance(node.slice, ast.Slice):
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            bounds = [None if part is None else self._value(part) for part in parts]
            return self._safely(lambda: holder[slice(*bounds)])
        key = self._value(node.slice)
        return self._safely(lambda: holder[key])

    def _of_joinedstr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self._value(part)) for part in node.values)

    def _of_formattedvalue(self, node: ast.FormattedValue) -> str:
        value = self._value(node.value)
        form = ""
        if node.format_spec is not None:
            form = _checked(str(self._value(node.format_spec)))
        if node.conversion == ord("r"):
            value = repr(value)
        return self._safely(lambda: format(value, form))  # type: ignore[no-any-return]

    def _of_listcomp(self, node: ast.ListComp) -> Any:
        if len(node.generators) != 1:
            _give_up(node)
        [loop] = node.generators
        values: list[Any] = []
        for item in self._items(loop.iter):
            self._assign(loop.target, item)
            if all(self._value(test) for test in loop.ifs):
                values.append(self._value(node.elt))
        return values

    # --- calls

    def _of_call(self, node: ast.Call) -> Any:
        arguments = [self._value(argument) for argument in node.args]
        if isinstance(node.func, ast.Name) and node.func.id not in self._imported:
            return self._call_function(node, node.func.id, arguments)
        path = self._path(node.func)
        if path:
            return self._call_module(path, arguments)
        if not isinstance(node.func, ast.Attribute) or node.keywords:
            _give_up(node)
        return self._call_method(node.func, arguments)

    def _call_function(self, node: ast.Call, name: str, arguments: list[Any]) -> Any:
        if name == "print":
            return self._print(node, arguments)
        if node.keywords:
            _give_up(node)
        if name in ("exit", "quit"):
            raise ScriptExit(arguments[0] if arguments else None)
        if name == "range":
            numbers = self._safely(lambda: range(*arguments))
            if len(numbers) > MOST_ITEMS:
                raise Unknown("a long loop")
            return list(numbers)
        function = FUNCTIONS.get(name)
        if function is None:
            raise Unknown(f"{name}()")
        return self._safely(lambda: function(*arguments))

    def _print(self, node: ast.Call, arguments: list[Any]) -> None:
        separator, end, is_error = " ", "\n", False
        for keyword in node.keywords:
            if keyword.arg == "file":
                is_error = self._path(keyword.value) == "sys.stderr"
            elif keyword.arg == "sep":
                separator = str(self._value(keyword.value))
            elif keyword.arg == "end":
                end = str(self._value(keyword.value))
            elif keyword.arg != "flush":
                _give_up(node)
        text = separator.join(map(str, arguments))
        printed = self._printed()
        target = printed.err if is_error else printed.out
        target.append(f"{text}{end}")

    def _call_module(self, path: str, arguments: list[Any]) -> Any:
        if path in ("sys.exit", "os._exit"):
            raise ScriptExit(arguments[0] if arguments else None)
        if path in ("os.environ.get", "os.getenv"):
            return self._safely(lambda: self._call.env.get(*arguments))
        if path == "time.sleep":
            self.slept += self._safely(lambda: float(arguments[0]))
            return None
        if path in ("sys.stdout.write", "sys.stderr.write"):
            printed = self._printed()
            target = printed.out if path == "sys.stdout.write" else printed.err
            target.append(str(arguments[0]))
            return len(str(arguments[0]))
        if path in ("sys.stdout.flush", "sys.stderr.flush"):
            return None
        if path == "os.path.exists":
            return self._call.files.exists(str(arguments[0]))
        raise Unknown(path)

    def _call_method(self, function: ast.Attribute, arguments: list[Any]) -> Any:
        holder = self._value(function.value)
        name = function.attr
        if isinstance(holder, str) and name == "format":
            return self._safely(lambda: _formatted(holder, arguments))
        if name == "zfill":
            _checked(str(arguments[0]))
        if name not in METHODS.get(type(holder), ()):
            raise Unknown(f".{name}()")
        value = self._safely(lambda: getattr(holder, name)(*arguments))
        if isinstance(holder, dict) and not isinstance(value, PLAIN):
            return list(value)
        return value


def _formatted(text: str, arguments: list[Any]) -> str:
    """Fill the places of a text; those that reach into values are not known."""
    for _, field, _, _ in Formatter().parse(text):
        if field and not field.isdigit():
            raise Unknown("format with names")
    return _checked(text).format(*arguments)


def _checked(form: str) -> str:
    """Return a format. Raises Unknown for one that may make a large text."""
    if LARGE_WIDTH.search(form):
        raise Unknown("a large value")
    return form


def _give_up(node: ast.AST) -> NoReturn:
    raise Unknown(f"a program with {type(node).__name__}")
