"""The objects that a command is about: ``TYPE NAME``, ``TYPE/NAME``, ``TYPE1,TYPE2``, ``all``, ``-l``, ``-f``.

:func:`find` reads words and flags into a :class:`Result`, which visits :class:`Info` after Info, objects and errors in
upstream's order. Upstream: ``cli-runtime/pkg/resource/{builder,visitor,result}.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.errors import AggregateError, CliError, is_expected, is_status, prefixed, raise_all
from kubepy.cli.runtime.session import DEFAULT_NAMESPACE, Session
from kubepy.cluster.objects.meta import Object, labels_of
from kubepy.cluster.scheme import Resource

if TYPE_CHECKING:
    from kubepy.cli.runtime.manifests import Manifest

MISSING_RESOURCE = """You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'"""


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
        return f"{printed_kind(self.resource)}/{self.name}"

    def __str__(self) -> str:
        one = self.resource
        group_version = one.api_version if one.group else f"/{one.version}"
        return (f'Resource: "{resource_text(one)}", GroupVersionKind: "{group_version}, Kind={one.kind}"\n'
                f'Name: "{self.name}", Namespace: "{self.namespace}"')

    def get(self, session: Session) -> Object:
        """Read the object from the cluster into ``object``. Raises NotFound, of the namespace if that is missing."""
        if not self.name:
            raise CliError("resource name may not be empty")
        try:
            self.object = self._read(session)
        except Exception as error:
            if is_status(error, "NotFound") and self.namespace not in ("", DEFAULT_NAMESPACE):
                session.client.get("namespaces", self.namespace)
            raise
        return self.object

    def _read(self, session: Session) -> Object:
        if self.subresource == "scale":
            return session.client.get_scale(self.resource.key, self.name, namespace=self.namespace)
        if self.subresource and self.subresource not in self.resource.subresources:
            from kubepy.cluster.errors import no_such_resource

            raise no_such_resource()
        return session.client.get(self.resource.key, self.name, namespace=self.namespace)

    def refresh(self, obj: Object) -> None:
        """Take what the cluster answered."""
        self.object = obj
        self.name = obj["metadata"].get("name", "")
        self.namespace = obj["metadata"].get("namespace", "")


def printed_kind(resource: Resource) -> str:
    kind = resource.kind.lower()
    return f"{kind}.{resource.group}" if resource.group else kind


def resource_text(resource: Resource) -> str:
    """``apps/v1, Resource=daemonsets``, ``/v1, Resource=pods`` (``schema.GroupVersionResource.String``)."""
    return f"{resource.group}/{resource.version}, Resource={resource.plural}"


# An exception stands for what could not be found or read; it is reported after the errors of single objects.
Found = Info | Exception
Act = Callable[[Info], None]


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
        self._ignored: tuple[str, ...] = ()

    def ignore(self, *reasons: str) -> None:
        """Drop Status errors of these reasons."""
        self._ignored = reasons

    def kept(self) -> Result:
        """The same result, read once, so that it can be shown before it is used."""
        kept = Result(list(self._found), prepare=self._prepare, single=self.single, scopes=self.scopes)
        kept.ignore(*self._ignored)
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
        return [] if self._ignored and is_status(error, *self._ignored) else [error]

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


class Scope(NamedTuple):
    """A type that was asked for without names: what a watch follows. ``namespace`` None: all."""

    resource: Resource
    namespace: str | None
    selector: str
    field_selector: str


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


def find(session: Session, given: Invocation, *, args: Sequence[str] | None = None, bare_types: bool = False,
         latest: bool = False, retrieve: bool = True, validation: str = "Ignore", local: bool = False,
         everything: bool = False, selector: str | None = None) -> Result:
    """What a command line is about; its flags are looked up by their usual names.

    :param args: the words, if they are not all of ``given.args``.
    :param bare_types: a type without a name means all of its objects (get), otherwise that is an error.
    :param latest: objects of files are read from the cluster.
    :param retrieve: named objects are read from the cluster when they are visited.
    :param validation: see ``flagsets.field_validation``; only tells whether a manifest must name its kind.
    :param local: never look at the cluster: only files are taken.
    :param everything: all objects of the types, whatever names and selectors say against it.
    :param selector: the label selector; None: as the flag says.
    :raises CliError, AggregateError: for words that cannot be meant together, paths that are not there.
    """
    words = list(given.args if args is None else args)
    selector = given.flag("selector", "") if selector is None else selector
    query, errors = _query(session, given, words, selector, bare_types, everything)
    query = query._replace(validation=validation, local=local)
    raise_all(errors)
    if query.filenames or query.kustomization:
        return _by_paths(session, query, latest)
    if local:
        raise CliError(MISSING_RESOURCE)
    return _by_words(session, query, retrieve)


def _query(session: Session, given: Invocation, args: list[str], selector: str, bare_types: bool,
           everything: bool) -> tuple[Query, list[Exception]]:
    errors: list[Exception] = []
    if given.flag("filename") and given.flag("kustomize"):
        errors.append(CliError("only one of -f or -k can be specified"))
    elif given.flag("kustomize") and given.flag("recursive"):
        errors.append(CliError("the -k flag can't be used with -f or -R"))
    filenames = [] if errors else _filenames(given, errors)
    selector, fields = selector.strip(), given.flag("field-selector", "").strip()
    if everything and (selector or fields):
        errors.append(CliError("setting 'all' parameter but found a non empty selector. "))
    all_namespaces = bool(given.flag("all-namespaces"))
    try:
        words = _normalized(session, args)
    except CliError as error:
        errors.append(error)
        words = []
    bare = bare_types and len(words) == 1 and "/" not in words[0]
    query = Query(words, filenames, None if all_namespaces else session.namespace,
                  session.namespace_given and not all_namespaces, selector or ("" if everything or bare else None),
                  fields, given.flag("subresource", ""), kustomization=given.flag("kustomize", ""))
    return query, errors


def _filenames(given: Invocation, errors: list[Exception]) -> list[str]:
    names = given.flag("filename", [])
    if not names:
        return []
    from kubepy.cli.runtime.manifests import expand_paths

    return expand_paths(names, bool(given.flag("recursive")), errors)


# --- words --------------------------------------------------------------------------------------------------------


def _normalized(session: Session, args: list[str]) -> list[str]:
    """``a,b x y`` becomes ``a/x a/y b/x b/y``; categories (``all``) become their types."""
    if len(args) >= 2 and len(types := _split(args[0])) > 1:
        args = [f"{one}/{name}" for one in types for name in args[1:]]
    slashes = sum("/" in word for word in args)
    if slashes:
        if slashes != len(args):
            raise CliError("there is no need to specify a resource type as a separate argument when passing arguments "
                           "in resource/name form (e.g. 'kubepy get resource/<resource_name>' instead of 'kubepy get "
                           "resource resource/<resource_name>'")
        for word in args:
            _type_and_name(word)
    elif args:
        args = [_expand_categories(session, args[0]), *args[1:]]
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


def _expand_categories(session: Session, words: str) -> str:
    expanded: list[str] = []
    for word in words.split(","):
        found = session.scheme.in_category(word) if word else []
        expanded += [one.key for one in found] or [word]
    return ",".join(expanded)


def resource_of(session: Session, word: str) -> Resource:
    """The type a word names. Raises CliError."""
    found = session.scheme.find(word)
    if found is None:
        raise CliError(f'the server doesn\'t have a resource type "{word.partition(".")[0]}"')
    return found


def _types(session: Session, words: str) -> list[Resource]:
    return list({one.key: one for one in (resource_of(session, word) for word in _split(words))}.values())


def _by_words(session: Session, query: Query, retrieve: bool) -> Result:
    if query.selector is not None or query.field_selector:
        return _by_selector(session, query)
    if not query.args:
        raise CliError(MISSING_RESOURCE)
    if "/" in query.args[0]:
        return _by_names(session, query, [_type_and_name(word) for word in query.args], retrieve)
    types = _types(session, query.args[0])
    if len(query.args) == 1:
        raise CliError("resource(s) were provided, but no name was specified")
    return _by_names(session, query, [(types[0].key, name) for name in query.args[1:]], retrieve)


def _by_selector(session: Session, query: Query) -> Result:
    if query.args and "/" in query.args[0]:
        raise CliError("selectors and the all flag cannot be used when passing resource/name arguments")
    if len(query.args) > 1:
        raise CliError("name cannot be provided when a selector is specified")
    if not query.args:
        raise CliError("at least one resource must be specified to use a selector")
    if query.subresource:
        raise CliError("subresource cannot be used when bulk resources are specified")
    scopes = [Scope(one, query.namespace if one.namespaced else "", query.selector or "", query.field_selector)
              for one in _types(session, query.args[0])]
    found = (one for scope in scopes for one in listed(session, scope))
    return Result(found, scopes=scopes)


def listed(session: Session, scope: Scope) -> Iterator[Found]:
    """The objects of a scope, in order; or the error that listing them gave."""
    try:
        objects = session.client.list(scope.resource.key, namespace=scope.namespace if scope.resource.namespaced
                                      else None, label_selector=scope.selector, field_selector=scope.field_selector)
    except Exception as error:
        if not is_status(error):
            raise
        yield _enhanced(error, scope)
        return
    for obj in objects.items:
        yield info_of(scope.resource, obj)


def info_of(resource: Resource, obj: Object) -> Info:
    meta = obj["metadata"]
    return Info(resource, meta.get("namespace", ""), meta.get("name", ""), object=obj)


def _enhanced(error: Exception, scope: Scope) -> Exception:
    if not is_status(error, "BadRequest", "NotFound"):
        return error
    subject = resource_text(scope.resource)
    if not (scope.selector or scope.field_selector):
        return prefixed(error, f'Unable to list "{subject}": ')
    return prefixed(error, f'Unable to find "{subject}" that match label selector "{scope.selector}", field selector '
                    f'"{scope.field_selector}": ')


def _by_names(session: Session, query: Query, pairs: list[tuple[str, str]], retrieve: bool) -> Result:
    infos: list[Info] = []
    for word, name in pairs:
        resource = resource_of(session, word)
        if resource.namespaced and query.namespace is None:
            raise CliError("a resource cannot be retrieved by name across all namespaces")
        infos.append(Info(resource, query.namespace or "", name, subresource=query.subresource))
    return Result(infos, prepare=(lambda info: _retrieve(session, info)) if retrieve else None, single=len(infos) == 1)


def _retrieve(session: Session, info: Info) -> None:
    """Read the object, if it is not known (``RetrieveLazy``)."""
    if info.object is None:
        info.get(session)


# --- files --------------------------------------------------------------------------------------------------------


def _by_paths(session: Session, query: Query, latest: bool) -> Result:
    if query.args:
        raise CliError("resource/name arguments cannot be provided when a path is specified" if "/" in query.args[0]
                       else "when paths, URLs, or stdin is provided as input, you may not specify resource arguments "
                       "as well")
    from kubepy.cli.runtime.manifests import read, read_kustomization

    single = len(query.filenames) == 1 and query.filenames != ["-"]
    if query.kustomization:
        made = read_kustomization(session, query.kustomization, query.validation, local=query.local)
    else:
        made = (one for path in query.filenames for one in read(session, path, query.validation, local=query.local))
    return Result(_of_manifests(session, query, made, latest), single=single,
                  prepare=None if latest or query.local else lambda info: _place(info, query))


def _of_manifests(session: Session, query: Query, manifests: Iterable[Manifest], latest: bool) -> Iterator[Found]:
    """The objects of files, filtered by -l; with ``latest`` read from the cluster before that."""
    matches = _matcher(query.selector)
    for manifest in manifests:
        errors: list[Exception] = []
        for one in manifest.found:
            one = _latest(session, query, one) if latest and isinstance(one, Info) else one
            if isinstance(one, Exception):
                errors.append(one)
            elif matches(one):
                yield one
        if errors:
            yield AggregateError(errors) if manifest.is_list else errors[0]


def _latest(session: Session, query: Query, info: Info) -> Found:
    """An object as it is in the cluster (``RetrieveLatest``); one without a name stays as it is, and has no table."""
    try:
        _place(info, query)
        if info.resource.namespaced and not info.namespace:
            raise CliError(f'no namespace set on resource {resource_text(info.resource)} "{info.name}"')
        if info.name:
            info.get(session)
        else:
            info.resource = info.resource._replace(plural="")
    except Exception as error:
        if not is_expected(error):
            raise
        return error
    return info


def _matcher(selector: str | None) -> Callable[[Info], bool]:
    if not selector:
        return lambda info: True
    from kubepy.cluster.selectors.labels import SelectorError, parse_labels

    try:
        parsed = parse_labels(selector)
    except SelectorError as error:
        raise CliError(f'the provided selector "{selector}" is not valid: {error}') from None
    return lambda info: parsed.matches(labels_of(info.content))


def _place(info: Info, query: Query) -> None:
    """Give an object of a file its namespace. Raises CliError when ``-n`` says another than the file."""
    if not info.resource.namespaced:
        info.content["metadata"].pop("namespace", None)
        return
    wanted = query.namespace or ""
    if not info.namespace:
        info.namespace = wanted
        if wanted:
            info.content["metadata"]["namespace"] = wanted
    elif query.enforce_namespace and info.namespace != wanted:
        raise CliError(f'the namespace from the provided object "{info.namespace}" does not match the namespace '
                       f'"{wanted}". You must pass \'--namespace={info.namespace}\' to perform this operation.')
