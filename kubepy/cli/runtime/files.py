"""The objects of ``-f`` and ``-k``: given a namespace, filtered by ``-l``, read from the cluster on demand.

What a file says is read by :mod:`kubepy.cli.runtime.manifests`. Upstream: ``cli-runtime/pkg/resource/visitor.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kubepy.api.meta import labels_of
from kubepy.cli.errors import AggregateError, CliError, is_expected
from kubepy.cli.runtime.infos import Found, Info, Query, Result, resource_text
from kubepy.cli.runtime.manifests import Manifest, read, read_kustomization
from kubepy.cli.runtime.session import Session
from kubepy.quoting import quote


def by_paths(session: Session, query: Query, latest: bool) -> Result:
    """What the files of ``query`` hold; ``latest``: as it is in the cluster. Raises CliError for words beside them."""
    if query.args:
        raise CliError("resource/name arguments cannot be provided when a path is specified" if "/" in query.args[0]
                       else "when paths, URLs, or stdin is provided as input, you may not specify resource arguments "
                       "as well")
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
        if query.typed:
            _require_fit(info)
        _place(info, query)
        if info.resource.namespaced and not info.namespace:
            raise CliError(f"no namespace set on resource {resource_text(info.resource)} {quote(info.name)}")
        if info.name:
            info.get(session)
        else:
            info.resource = info.resource._replace(plural="")
    except Exception as error:
        if not is_expected(error):
            raise
        return error
    return info


def _require_fit(info: Info) -> None:
    """Raise CliError for an object that its Go type does not hold, if there is one."""
    from kubepy.api.types import type_of
    from kubepy.cli.runtime.typed import typed

    if type_of(info.content):
        typed(info)


def _matcher(selector: str | None) -> Callable[[Info], bool]:
    if not selector:
        return lambda info: True
    from kubepy.api.selectors import SelectorError, parse_labels

    try:
        parsed = parse_labels(selector)
    except SelectorError as error:
        raise CliError(f"the provided selector {quote(selector)} is not valid: {error}") from None
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
        raise CliError(f"the namespace from the provided object {quote(info.namespace)} does not match the namespace "
                       f"{quote(wanted)}. You must pass '--namespace={info.namespace}' to perform this operation.")
