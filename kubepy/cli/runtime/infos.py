"""One object that a command is about (:class:`Info`), and several of them, visited in order
(:class:`Result`).

Upstream: ``cli-runtime/pkg/resource/{visitor,result}.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.cli.errors import AggregateError, CliError, is_expected, raise_all
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.options import DEFAULT_NAMESPACE
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api import errors as api_errors


class Info:
    """One object that a command is about: its type, namespace and name, and the object itself when
    it is known.

    ``object`` is shared when it comes from the cluster (read-only), and this Info's own when it
    comes from a file. ``source`` is the file ("" otherwise).
    """

    __slots__ = ("name", "namespace", "object", "resource", "source", "subresource")

    def __init__(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        object: Object | None = None,
        source: str = "",
        subresource: str = "",
    ) -> None:
        self.resource = resource
        self.namespace = namespace if resource.namespaced else ""
        self.name = name
        self.object = object
        self.source = source
        self.subresource = subresource

    @property
    def content(self) -> Object:
        """The object; only for an Info whose object is known."""
        assert self.object is not None
        return self.object

    @property
    def object_name(self) -> str:
        """``daemonsets/x``: the name in warnings and timeouts."""
        return f"{self.resource.plural}/{self.name}"

    @property
    def printed_name(self) -> str:
        """``daemonset.apps/x``: the name in success messages and ``-o name``."""
        return printable(f"{printed_kind(self.resource)}/{self.name}")

    def __str__(self) -> str:
        resource = self.resource
        group_version = resource.api_version if resource.group else f"/{resource.version}"
        return (
            f'Resource: {quote(resource_text(resource))}, GroupVersionKind: "{group_version}, '
            f'Kind={resource.kind}"\n'
            f"Name: {quote(self.name)}, Namespace: {quote(self.namespace)}"
        )

    def get(self, factory: Factory) -> Object:
        """Read the object from the cluster into ``object``. Raises NotFound, of the namespace if
        that is missing."""
        if not self.name:
            raise CliError("resource name may not be empty")
        try:
            if self.subresource == "scale":
                self.object = factory.client.get(
                    self.resource.gvr, self.name, namespace=self.namespace, subresource="scale"
                )
            elif self.subresource and self.subresource not in self.resource.subresources:
                raise api_errors.no_such_resource()
            else:
                self.object = factory.client.get(
                    self.resource.gvr, self.name, namespace=self.namespace
                )
        except Exception as error:
            if isinstance(error, api_errors.NotFound) and self.namespace not in (
                "",
                DEFAULT_NAMESPACE,
            ):
                factory.client.get("namespaces", self.namespace)
            raise

        return self.object

    def refresh(self, obj: Object) -> None:
        """Hold the object that the cluster answered with."""
        self.object = obj
        self.name = obj["metadata"].get("name", "")
        self.namespace = obj["metadata"].get("namespace", "")


def info_of(resource: Resource, obj: Object) -> Info:
    meta = obj["metadata"]
    return Info(resource, meta.get("namespace", ""), meta.get("name", ""), object=obj)


def printed_kind(resource: Resource) -> str:
    kind = resource.kind.lower()
    if resource.group:
        return f"{kind}.{resource.group}"
    return kind


def resource_text(resource: Resource) -> str:
    """``apps/v1, Resource=daemonsets``, ``/v1, Resource=pods``
    (``schema.GroupVersionResource.String``)."""
    return f"{resource.group}/{resource.version}, Resource={resource.plural}"


# An exception stands for an object that could not be found or read; it is reported after the errors
# of single objects.
InfoOrError = Info | Exception
Act = Callable[[Info], None]


class Scope(NamedTuple):
    """A type without names of objects on the line, which a watch follows. ``namespace`` None:
    all."""

    resource: Resource
    namespace: str | None
    selector: str
    field_selector: str


class Result:
    """Objects that are visited one by one; they are read when they are visited.

    :param entries: the objects, and errors in place of those that could not be found.
    :param prepare: done with each object before it is visited.
    :param single: one object was named, and is printed as itself, not in a List.
    :param scopes: the types on the line without names.
    """

    def __init__(
        self,
        entries: Iterable[InfoOrError],
        *,
        prepare: Act | None = None,
        single: bool = False,
        scopes: Sequence[Scope] = (),
    ) -> None:
        self._entries = entries
        self._prepare = prepare
        self.single = single
        self.scopes = scopes
        self._ignores_not_found = False

    def ignore_not_found(self) -> None:
        """Drop NotFound errors."""
        self._ignores_not_found = True

    def kept(self) -> Result:
        """Return the same result, read once, so that it can be shown before it is used."""
        kept = Result(
            list(self._entries), prepare=self._prepare, single=self.single, scopes=self.scopes
        )
        kept._ignores_not_found = self._ignores_not_found
        return kept

    def visit(self, act: Act) -> None:
        """Call ``act`` with each Info; errors, its own among them, are raised together at the
        end."""
        raise_all(self.errors_of(act))

    def visit_until_error(self, act: Act) -> None:
        """Call ``act`` with each Info, up to the first error."""
        for info in self._entries:
            if isinstance(info, Exception):
                raise info
            self._visit(info, act)

    def errors_of(self, act: Act) -> list[Exception]:
        """Call ``act`` with each Info; return its errors, then those of finding the objects as
        one."""
        errors: list[Exception] = []
        not_found: list[Exception] = []
        for info in self._entries:
            if isinstance(info, Exception):
                not_found.append(info)
                continue
            try:
                self._visit(info, act)
            except BrokenPipeError:  # nobody reads what is printed of any object
                raise
            except Exception as error:
                if not is_expected(error):
                    raise
                errors += self._counted(error)
        return errors + self.in_one(not_found)

    def in_one(self, errors: Sequence[Exception]) -> list[Exception]:
        """Return errors of finding objects as one, without those that do not count."""
        counted = [kept for error in errors for kept in self._counted(error)]
        if counted:
            return [AggregateError(counted)]
        return []

    def _visit(self, info: Info, act: Act) -> None:
        if self._prepare:
            self._prepare(info)
        act(info)

    def _counted(self, error: Exception) -> list[Exception]:
        if self._ignores_not_found and isinstance(error, api_errors.NotFound):
            return []
        return [error]

    def infos(self) -> tuple[list[Info], list[Exception]]:
        """Return the objects found, and the errors as one."""
        infos: list[Info] = []
        errors = self.errors_of(infos.append)
        return infos, errors if len(errors) < 2 else [AggregateError(errors)]

    def all_infos(self) -> list[Info]:
        """Return the objects found. Raises the errors, if there are any."""
        infos, errors = self.infos()
        raise_all(errors)
        return infos
