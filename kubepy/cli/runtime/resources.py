"""The objects that a command is about: ``TYPE NAME``, ``TYPE/NAME``, ``TYPE1,TYPE2``, ``all``, ``-l``, ``-f``.

:func:`find` reads words and flags into a :class:`Result`, which visits :class:`Info` after Info, objects and errors in
upstream's order. Upstream: ``cli-runtime/pkg/resource/builder.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError, prefixed, raise_all
from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.infos import Found, Info, Query, Result, Scope, info_of, resource_text
from kubepy.cli.runtime.session import Session
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors

MISSING_RESOURCE = """You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'"""


def find(session: Session, given: Invocation, *, args: Sequence[str] | None = None, bare_types: bool = False,
         latest: bool = False, retrieve: bool = True, validation: str = "Ignore", local: bool = False,
         everything: bool = False, selector: str | None = None, typed: bool = False) -> Result:
    """What a command line is about; its flags are looked up by their usual names.

    :param args: the words, if they are not all of ``given.args``.
    :param bare_types: a type without a name means all of its objects (get), otherwise that is an error.
    :param latest: objects of files are read from the cluster.
    :param retrieve: named objects are read from the cluster when they are visited.
    :param validation: see ``flagsets.field_validation``; only tells whether a manifest must name its kind.
    :param local: never look at the cluster: only files are taken.
    :param everything: all objects of the types, whatever names and selectors say against it.
    :param selector: the label selector; None: as the flag says.
    :param typed: the command knows the Go types of objects: those of files must fit them.
    :raises CliError, AggregateError: for words that cannot be meant together, paths that are not there.
    """
    words = list(given.args if args is None else args)
    selector = given.flag("selector", "") if selector is None else selector
    query, errors = _query(session, given, words, selector, bare_types, everything)
    query = query._replace(validation=validation, local=local, typed=typed)
    raise_all(errors)
    if query.filenames or query.kustomization:
        from kubepy.cli.runtime.files import by_paths

        return by_paths(session, query, latest)
    if local:
        raise CliError(MISSING_RESOURCE)
    return _by_words(session, query, retrieve)


def _query(session: Session, given: Invocation, args: list[str], selector: str, bare_types: bool,
           everything: bool) -> tuple[Query, list[Exception]]:
    errors: list[Exception] = []
    if given.flag("filename") and given.flag("kustomize"):
        errors.append(CliError("only one of -f or -k can be specified"))
    if given.flag("kustomize") and given.flag("recursive"):
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
        raise CliError(f'the server doesn\'t have a resource type {quote(word.partition(".")[0])}')
    warn_of_short_name(session, word)
    return found


def warn_of_short_name(session: Session, word: str) -> None:
    """Say which resources else have the short name that a word is (``expandResourceShortcut``)."""
    for other in session.scheme.also_short_named(word):
        session.warn(f"short name {quote(word)} could also match lower priority resource {other.key}")


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
    return _by_names(session, query, [(types[0].full_name, name) for name in query.args[1:]], retrieve)


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
        objects = session.client.list(scope.resource.address, namespace=scope.namespace if scope.resource.namespaced
                                      else None, label_selector=scope.selector, field_selector=scope.field_selector)
    except api_errors.Status as error:
        yield _enhanced(error, scope)
        return
    for obj in objects.items:
        yield info_of(scope.resource, obj)


def _enhanced(error: Exception, scope: Scope) -> Exception:
    if not isinstance(error, (api_errors.BadRequest, api_errors.NotFound)):
        return error
    subject = resource_text(scope.resource)
    if not (scope.selector or scope.field_selector):
        return prefixed(error, f"Unable to list {quote(subject)}: ")
    return prefixed(error, f"Unable to find {quote(subject)} that match label selector {quote(scope.selector)}, "
                    f"field selector {quote(scope.field_selector)}: ")


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
