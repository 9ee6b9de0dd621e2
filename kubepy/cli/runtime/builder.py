"""The objects that a command is about: ``TYPE NAME``, ``TYPE/NAME``, ``TYPE1,TYPE2``, ``all``,
``-l``, ``-f``, ``-k``.

A :class:`Builder` reads words and flags into a :class:`~kubepy.cli.runtime.infos.Result`. Upstream:
``cli-runtime/pkg/resource/{builder,visitor}.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object, labels_of
from kubepy.api.scheme import Resource
from kubepy.cli.errors import AggregateError, CliError, is_expected, prefixed, raise_all
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Info, InfoOrError, Result, Scope, info_of, resource_text
from kubepy.cli.runtime.options import (
    AllNamespacesOptions,
    FieldSelectorOptions,
    FilenameOptions,
    KustomizeOptions,
    Options,
    RecursiveOptions,
    SelectorOptions,
    SubresourceOptions,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.storage import Key

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api import selectors
    from kubepy.api import types as go_types
    from kubepy.cli.runtime import manifests, objects

MISSING_RESOURCE = """You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'"""


class Builder(NamedTuple):
    """A reader of words and flags; flags count if the options have them.

    :param args: the words, if they are not all of ``options.args``.
    :param bare_types: a type without a name means all of its objects (get), otherwise that is an
        error.
    :param latest: objects of files are read from the cluster.
    :param retrieve: named objects are read from the cluster when they are visited.
    :param validation: see ``ValidateOptions.field_validation``; only decides whether a manifest
        must name its kind.
    :param local: never read the cluster: only files are taken.
    :param everything: all objects of the types; names and selectors beside it are errors.
    :param selector: the label selector; None: as the flag says.
    :param typed: the command works on Go types: objects of files must fit them.
    :param related: the command is about more than the objects that are named: their pods, for
        example.
    """

    factory: Factory
    options: Options
    args: Sequence[str] | None = None
    bare_types: bool = False
    latest: bool = False
    retrieve: bool = True
    validation: str = "Ignore"
    local: bool = False
    everything: bool = False
    selector: str | None = None
    typed: bool = False
    related: bool = False

    def do(self) -> Result:
        """Find the objects. Raises CliError, AggregateError for words and flags that contradict
        each other."""
        options = self.options
        errors: list[Exception] = []
        kustomization = options.kustomize if isinstance(options, KustomizeOptions) else ""
        filenames: list[str] = []
        if isinstance(options, FilenameOptions):
            if options.filename and kustomization:
                errors.append(CliError("only one of -f or -k can be specified"))
            recursive = isinstance(options, RecursiveOptions) and options.recursive
            if kustomization and recursive:
                errors.append(CliError("the -k flag can't be used with -f or -R"))
            if options.filename and not errors:
                filenames = manifests.expand_paths(options.filename, recursive, errors)

        selector = self.selector or ""
        if self.selector is None and isinstance(options, SelectorOptions):
            selector = options.selector
        selector = selector.strip()
        fields = options.field_selector.strip() if isinstance(options, FieldSelectorOptions) else ""
        if self.everything and (selector or fields):
            errors.append(CliError("setting 'all' parameter but found a non empty selector. "))
        try:
            words = _normalized(
                self.factory, list(options.args if self.args is None else self.args)
            )
        except CliError as error:
            errors.append(error)
            words = []

        is_all = isinstance(options, AllNamespacesOptions) and options.all_namespaces
        namespace = None if is_all else self.factory.namespace
        raise_all(errors)
        if filenames or kustomization:
            if words:
                raise CliError(
                    "resource/name arguments cannot be provided when a path is specified"
                    if "/" in words[0]
                    else "when paths, URLs, or stdin is provided as input, you may not specify "
                    "resource "
                    "arguments as well"
                )
            entries = self._of_manifests(
                self._manifests(filenames, kustomization), selector, namespace
            )
            is_one_file = len(filenames) == 1 and filenames != ["-"]
            return Result(
                entries,
                single=is_one_file or bool(kustomization),
                prepare=None
                if self.latest or self.local
                else lambda info: self._place(info, namespace),
            )

        if self.local:
            raise CliError(MISSING_RESOURCE)
        is_bare = self.bare_types and len(words) == 1 and "/" not in words[0]
        if selector or fields or self.everything or is_bare:
            return self._by_selector(words, namespace, selector, fields)
        return self._by_names(words, namespace)

    # --- words

    def _by_selector(
        self, words: list[str], namespace: str | None, selector: str, fields: str
    ) -> Result:
        if words and "/" in words[0]:
            raise CliError(
                "selectors and the all flag cannot be used when passing resource/name arguments"
            )

        if len(words) > 1:
            raise CliError("name cannot be provided when a selector is specified")
        if not words:
            raise CliError("at least one resource must be specified to use a selector")
        if isinstance(self.options, SubresourceOptions) and self.options.subresource:
            raise CliError("subresource cannot be used when bulk resources are specified")
        self.factory.catch_up()
        scopes = [
            Scope(resource, namespace if resource.namespaced else "", selector, fields)
            for resource in _types(self.factory, words[0])
        ]
        return Result(
            (entry for scope in scopes for entry in listed(self.factory, scope)), scopes=scopes
        )

    def _by_names(self, words: list[str], namespace: str | None) -> Result:
        if not words:
            raise CliError(MISSING_RESOURCE)
        if "/" in words[0]:
            pairs = [_type_and_name(word) for word in words]
        else:
            types = _types(self.factory, words[0])
            if len(words) == 1:
                raise CliError("resource(s) were provided, but no name was specified")
            pairs = [(types[0].full_name, name) for name in words[1:]]

        subresource = (
            self.options.subresource if isinstance(self.options, SubresourceOptions) else ""
        )
        infos: list[Info] = []
        for word, name in pairs:
            resource = resource_of(self.factory, word)
            if resource.namespaced and namespace is None:
                raise CliError("a resource cannot be retrieved by name across all namespaces")
            infos.append(Info(resource, namespace or "", name, subresource=subresource))

        keys = [Key(info.resource.storage_key, info.namespace, info.name) for info in infos]
        self.factory.catch_up(None if self.related else keys)

        def retrieve(info: Info) -> None:
            """Read the object, if it is not known (``RetrieveLazy``)."""
            if info.object is None:
                info.get(self.factory)

        return Result(infos, prepare=retrieve if self.retrieve else None, single=len(infos) == 1)

    # --- files

    def _manifests(self, filenames: list[str], kustomization: str) -> Iterator[manifests.Manifest]:
        if kustomization:
            yield from manifests.read_kustomization(
                self.factory, kustomization, self.validation, local=self.local
            )
        for path in filenames:
            yield from manifests.read(self.factory, path, self.validation, local=self.local)

    def _of_manifests(
        self, read: Iterable[manifests.Manifest], selector: str, namespace: str | None
    ) -> Iterator[InfoOrError]:
        """Yield the objects of files, filtered by -l; with ``latest`` read from the cluster before
        that."""
        matches = _matcher(selector)
        for manifest in read:
            errors: list[Exception] = []
            for entry in manifest.entries:
                if self.latest and isinstance(entry, Info):
                    entry = self._latest(entry, namespace)
                if isinstance(entry, Exception):
                    errors.append(entry)
                elif matches(entry):
                    yield entry
            if errors:
                yield AggregateError(errors) if manifest.is_list else errors[0]

    def _latest(self, info: Info, namespace: str | None) -> InfoOrError:
        """Read an object from the cluster (``RetrieveLatest``); one without a name stays as it is,
        and has no table."""
        self.factory.catch_up()
        try:
            if self.typed and go_types.type_of(info.content):
                objects.typed(info.content, info.source)
            self._place(info, namespace)
            if info.resource.namespaced and not info.namespace:
                raise CliError(
                    f"no namespace set on resource {resource_text(info.resource)} "
                    f"{quote(info.name)}"
                )
            if info.name:
                info.get(self.factory)
            else:
                info.resource = info.resource._replace(plural="")
        except Exception as error:
            if not is_expected(error):
                raise
            return error

        return info

    def _place(self, info: Info, namespace: str | None) -> None:
        """Give an object of a file its namespace. Raises CliError when ``-n`` names another than
        the file."""
        if not info.resource.namespaced:
            info.content["metadata"].pop("namespace", None)
            return
        if not info.namespace:
            info.namespace = namespace or ""
            if namespace:
                info.content["metadata"]["namespace"] = namespace
        elif namespace is not None and self.factory.namespace_given and info.namespace != namespace:
            raise CliError(
                f"the namespace from the provided object {quote(info.namespace)} does not match "
                f"the "
                f"namespace {quote(namespace)}. You must pass '--namespace={info.namespace}' to "
                f"perform "
                "this operation."
            )


def _matcher(selector: str) -> Callable[[Info], bool]:
    """Return the test of a label selector. Raises CliError."""
    if not selector:
        return lambda info: True
    try:
        parsed = selectors.parse_labels(selector)
    except selectors.SelectorError as error:
        raise CliError(f"the provided selector {quote(selector)} is not valid: {error}") from None
    return lambda info: parsed.matches(labels_of(info.content))


# --- words ----------------------------------------------------------------------------------------


def _normalized(factory: Factory, args: list[str]) -> list[str]:
    """Make ``a/x a/y b/x b/y`` of ``a,b x y``; categories (``all``) become their types. Raises
    CliError."""
    if len(args) >= 2 and len(types := _split(args[0])) > 1:
        args = [f"{kind}/{name}" for kind in types for name in args[1:]]
    slashes = sum("/" in word for word in args)
    if slashes:
        if slashes != len(args):
            raise CliError(
                "there is no need to specify a resource type as a separate argument when passing "
                "arguments "
                "in resource/name form (e.g. 'kubepy get resource/<resource_name>' instead of "
                "'kubepy get "
                "resource resource/<resource_name>'"
            )
        for word in args:
            _type_and_name(word)
    elif args:
        expanded: list[str] = []
        for word in args[0].split(","):
            category = factory.scheme.in_category(word) if word else []
            expanded += [resource.key for resource in category] or [word]
        args = [",".join(expanded), *args[1:]]

    return args


def _split(words: str) -> list[str]:
    return list(dict.fromkeys(words.split(",")))


def _type_and_name(word: str) -> tuple[str, str]:
    parts = word.split("/")
    if len(parts) != 2:
        raise CliError("arguments in resource/name form may not have more than one slash")
    if not parts[0] or not parts[1] or len(_split(parts[0])) != 1:
        raise CliError("arguments in resource/name form must have a single resource and name")
    return parts[0], parts[1]


def resource_of(factory: Factory, word: str) -> Resource:
    """Return the type that a word names. Raises CliError."""
    resource = factory.scheme.find(word)
    if resource is None:
        raise CliError(f"the server doesn't have a resource type {quote(word.partition('.')[0])}")
    warn_of_short_name(factory, word)
    return resource


def warn_of_short_name(factory: Factory, word: str) -> None:
    """Warn of other resources that have a short name too (``expandResourceShortcut``)."""
    for other in factory.scheme.also_short_named(word):
        factory.warn(
            f"short name {quote(word)} could also match lower priority resource {other.key}"
        )


def _types(factory: Factory, words: str) -> list[Resource]:
    resources = (resource_of(factory, word) for word in _split(words))
    return list({resource.key: resource for resource in resources}.values())


def listed(factory: Factory, scope: Scope) -> Iterator[InfoOrError]:
    """Yield the objects of a scope, in order; or the error that listing them gave."""
    objects = objects_of(factory, scope, at_once=True)
    if isinstance(objects, Exception):
        yield objects
    else:
        yield from (info_of(scope.resource, obj) for obj in objects)


def objects_of(factory: Factory, scope: Scope, *, at_once: bool) -> Iterable[Object] | Exception:
    """Return the objects of a scope, in order; or the error that listing them gave.

    :param at_once: decode all of them now; else each is decoded when it is its turn, which is
        possible once.
    """
    resource, namespace, selector, fields = scope
    place = namespace if resource.namespaced else None
    client = factory.client
    try:
        if at_once:
            return client.list(
                resource.gvr, namespace=place, label_selector=selector, field_selector=fields
            ).items
        return client.stream(
            resource.gvr, namespace=place, label_selector=selector, field_selector=fields
        )
    except api_errors.Status as error:
        return _failure(scope, error)


def _failure(scope: Scope, error: api_errors.Status) -> Exception:
    """Return the error of a list in kubectl's words."""
    resource, _, selector, fields = scope
    if not isinstance(error, (api_errors.BadRequest, api_errors.NotFound)):
        return error
    if selector or fields:
        return prefixed(
            error,
            f"Unable to find {quote(resource_text(resource))} that match label selector "
            f"{quote(selector)}, field selector {quote(fields)}: ",
        )
    return prefixed(error, f"Unable to list {quote(resource_text(resource))}: ")
