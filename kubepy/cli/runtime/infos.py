"""What a command asks for (:class:`Query`), one object it is about (:class:`Info`), and what was found,
visited in order (:class:`Result`).

Upstream: ``cli-runtime/pkg/resource/{visitor,result}.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.cli.errors import AggregateError, CliError, is_expected, raise_all
from kubepy.cli.runtime.session import DEFAULT_NAMESPACE, Session
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api import errors as api_errors


class Query(NamedTuple):
    """What words and flags ask for. ``namespace`` None: all namespaces (only selectors can be answered)."""

    args: list[str]
    filenames: list[str]
    namespace: str | None
    enforce_namespace: bool
    selector: str | None
    field_selector: str
    subresource: str
    validation: str = "Ignore"
    local: bool = False
    kustomization: str = ""
    typed: bool = False


class Info:
    """One object a command is about: what was asked for, and the object when it is known.

    ``object`` is shared when it comes from the cluster (read-only), and this Info's own when it comes from a file.
    ``source`` is the file it comes from ("" otherwise), ``line`` where in it.
    """

    __slots__ = ("line", "name", "namespace", "object", "resource", "source", "subresource")

    def __init__(self, resource: Resource, namespace: str, name: str, *, object: Object | None = None,
                 source: str = "", line: int = 0, subresource: str = "") -> None:
        self.resource = resource
        self.namespace = namespace if resource.namespaced else ""
        self.name = name
        self.object = object
        self.source = source
        self.line = line
        self.subresource = subresource

    @property
    def content(self) -> Object:
        """The object, which must be known."""
        assert self.object is not None
        return self.object

    @property
    def object_name(self) -> str:
        """``daemonsets/x``: how warnings and timeouts name it."""
        return f"{self.resource.plural}/{self.name}"

    @property
    def printed_name(self) -> str:
        """``daemonset.apps/x``: how success messages and ``-o name`` name it."""
        return printable(f"{printed_kind(self.resource)}/{self.name}")

    def __str__(self) -> str:
        one = self.resource
        group_version = one.api_version if one.group else f"/{one.version}"
        return (f'Resource: {quote(resource_text(one))}, GroupVersionKind: "{group_version}, Kind={one.kind}"\n'
                f"Name: {quote(self.name)}, Namespace: {quote(self.namespace)}")

    def get(self, session: Session) -> Object:
        """Read the object from the cluster into ``object``. Raises NotFound, of the namespace if that is missing."""
        if not self.name:
            raise CliError("resource name may not be empty")
        try:
            self.object = self._read(session)
        except Exception as error:
            if isinstance(error, api_errors.NotFound) and self.namespace not in ("", DEFAULT_NAMESPACE):
                session.client.get("namespaces", self.namespace)
            raise
        return self.object

    def _read(self, session: Session) -> Object:
        if self.subresource == "scale":
            return session.client.get_scale(self.resource.key, self.name, namespace=self.namespace)
        if self.subresource and self.subresource not in self.resource.subresources:
            from kubepy.api.errors import no_such_resource

            raise no_such_resource()
        return session.client.get(self.resource.address, self.name, namespace=self.namespace)

    def refresh(self, obj: Object) -> None:
        """Take what the cluster answered."""
        self.object = obj
        self.name = obj["metadata"].get("name", "")
        self.namespace = obj["metadata"].get("namespace", "")


def info_of(resource: Resource, obj: Object) -> Info:
    meta = obj["metadata"]
    return Info(resource, meta.get("namespace", ""), meta.get("name", ""), object=obj)


def printed_kind(resource: Resource) -> str:
    kind = resource.kind.lower()
    return f"{kind}.{resource.group}" if resource.group else kind


def resource_text(resource: Resource) -> str:
    """``apps/v1, Resource=daemonsets``, ``/v1, Resource=pods`` (``schema.GroupVersionResource.String``)."""
    return f"{resource.group}/{resource.version}, Resource={resource.plural}"


# An exception stands for what could not be found or read; it is reported after the errors of single objects.
Found = Info | Exception
Act = Callable[[Info], None]


class Scope(NamedTuple):
    """A type that was asked for without names: what a watch follows. ``namespace`` None: all."""

    resource: Resource
    namespace: str | None
    selector: str
    field_selector: str


class Result:
    """What was found, visited one by one; objects are read when they are visited.

    ``prepare`` is done with each before it is visited. ``single``: one object was named, and is printed as itself, not
    in a List. ``scopes``: the types that were asked for without names.
    """

    def __init__(self, found: Iterable[Found], *, prepare: Act | None = None, single: bool = False,
                 scopes: Sequence[Scope] = ()) -> None:
        self._found = found
        self._prepare = prepare
        self.single = single
        self.scopes = scopes
        self._ignores_not_found = False

    def ignore_not_found(self) -> None:
        """Drop NotFound errors."""
        self._ignores_not_found = True

    def kept(self) -> Result:
        """The same result, read once, so that it can be shown before it is used."""
        kept = Result(list(self._found), prepare=self._prepare, single=self.single, scopes=self.scopes)
        kept._ignores_not_found = self._ignores_not_found
        return kept

    def visit(self, act: Act) -> None:
        """Call ``act`` with each Info; errors, its own among them, are raised together at the end."""
        raise_all(self.errors_of(act))

    def visit_until_error(self, act: Act) -> None:
        """Call ``act`` with each Info, up to the first error."""
        for one in self._found:
            if isinstance(one, Exception):
                raise one
            self._visit(one, act)

    def errors_of(self, act: Act) -> list[Exception]:
        """Call ``act`` with each Info: its errors, then those of finding them, which are one."""
        errors: list[Exception] = []
        not_found: list[Exception] = []
        for one in self._found:
            if isinstance(one, Exception):
                not_found += self._counted(one)
                continue
            try:
                self._visit(one, act)
            except Exception as error:
                if not is_expected(error):
                    raise
                errors += self._counted(error)
        return [*errors, AggregateError(not_found)] if not_found else errors

    def _visit(self, info: Info, act: Act) -> None:
        if self._prepare:
            self._prepare(info)
        act(info)

    def _counted(self, error: Exception) -> list[Exception]:
        return [] if self._ignores_not_found and isinstance(error, api_errors.NotFound) else [error]

    def infos(self) -> tuple[list[Info], list[Exception]]:
        """What was found, and what went wrong, as one error."""
        infos: list[Info] = []
        errors = self.errors_of(infos.append)
        return infos, errors if len(errors) < 2 else [AggregateError(errors)]

    def all_infos(self) -> list[Info]:
        """Every Info, or the errors raised."""
        infos, errors = self.infos()
        raise_all(errors)
        return infos
