"""Who asks, and whether they may: client certificates, bearer tokens, impersonation, authorization.

:func:`admit` is the way of every request. Only the health of the server is shown to requests
without a certificate and without a token. Upstream: ``apiserver/pkg/authentication/request``,
``apiserver/pkg/endpoints/filters`` (authentication, impersonation, authorization).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.values import names
from kubepy.apiserver.authorization import (
    ALL_AUTHENTICATED,
    ALL_UNAUTHENTICATED,
    ANONYMOUS,
    NODE_PREFIX,
    NODES_GROUP,
    PRIVILEGED_GROUP,
    AttributesRecord,
    Authorizer,
    TokenError,
    new_user,
    split_account,
    with_implied_groups,
)
from kubepy.quoting import quote
from kubepy.server.websockets import PROTOCOLS, WEBSOCKET, split_protocols

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import Application
    from kubepy.server.messages import HttpRequest, RequestInfo

HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
IMPERSONATE_USER, IMPERSONATE_UID = "impersonate-user", "impersonate-uid"
IMPERSONATE_GROUP, IMPERSONATE_EXTRA = "impersonate-group", "impersonate-extra-"
NODE_NAME = "authentication.kubernetes.io/node-name"
MAX_MODES = 10_000  # requesters whose modes are remembered
MANY_CHECKS = 4  # from so many groups or extra values on, one check of all of them comes first


def admit(
    request: HttpRequest, info: RequestInfo, application: Application, cluster: LocalCluster
) -> Object:
    """Return the user as whom a request is carried out, if that user may make it. Raises
    Unauthorized, Forbidden, BadRequest."""
    user = identify(request, info, application, cluster)
    attributes = attributes_of(info, user)
    decision = cluster.client.authorizer.authorize(attributes)
    if not decision.allowed:
        raise attributes.forbidden(decision.reason)
    return user


def identify(
    request: HttpRequest, info: RequestInfo, application: Application, cluster: LocalCluster
) -> Object:
    """Return the user as whom a request is carried out. Raises Unauthorized, Forbidden,
    BadRequest."""
    user = authenticate(request, cluster)
    attributes = attributes_of(info, user)
    return impersonated(
        request, attributes, cluster.client.authorizer, application.impersonation_modes
    )


def attributes_of(info: RequestInfo, user: Object) -> AttributesRecord:
    if not info.is_resource_request:
        return AttributesRecord(user, info.verb, is_resource_request=False, path=info.path)
    return AttributesRecord(
        user, info.verb, info.api_group, info.resource, info.subresource, info.namespace, info.name
    )


# --- authentication -------------------------------------------------------------------------------


def authenticate(request: HttpRequest, cluster: LocalCluster) -> Object:
    """Return the UserInfo of the one who sent a request. A certificate counts before a token.

    Raises Unauthorized for a token that is not accepted, and for a request without one that is not
    about health.
    """
    if request.certificate_user is not None:
        return request.certificate_user
    scheme, _, rest = next(iter(request.header_values("authorization")), "").strip().partition(" ")
    token = rest.partition(" ")[0] if scheme.lower() == "bearer" else ""
    if not token and request.header("upgrade") == WEBSOCKET:
        token = _protocol_token(request)
    if token:
        try:
            return cluster.client.tokens.authenticate(token).user
        except TokenError:
            raise errors.Unauthorized("Unauthorized") from None
    if unquote(request.path) in HEALTH_PATHS:
        return new_user(ANONYMOUS, [ALL_UNAUTHENTICATED])
    raise errors.Unauthorized("Unauthorized")


def _protocol_token(request: HttpRequest) -> str:
    """Return the token that a WebSocket names among its protocols, as browsers do, which cannot
    set headers; "" without one. Raises Unauthorized. Upstream:
    ``apiserver/pkg/authentication/request/websocket``."""
    protocols, tokens = split_protocols(
        [word.strip() for word in request.header(PROTOCOLS).split(",") if word.strip()]
    )
    if not tokens:
        return ""
    if len(tokens) > 1 or not protocols:
        raise errors.Unauthorized("Unauthorized")
    padding = "=" * (-len(tokens[0]) % 4)
    try:
        return base64.b64decode(f"{tokens[0]}{padding}", b"-_", validate=True).decode()
    except ValueError:
        raise errors.Unauthorized("Unauthorized") from None


# --- impersonation --------------------------------------------------------------------------------


def impersonated(
    request: HttpRequest,
    attributes: AttributesRecord,
    authorizer: Authorizer,
    last_modes: MutableMapping[str, str],
) -> Object:
    """Return the user whom the headers of a request impersonate, or the requester. Raises
    Forbidden, BadRequest.

    The narrower permissions of ``ConstrainedImpersonation`` are tried before ``impersonate``; the
    error is that of the first one.

    :param last_modes: the mode that was allowed last to each requester, which is tried first; it is
        changed.
    """
    wanted = wanted_user(request)
    if wanted is None:
        return attributes.user
    first_error: errors.Forbidden | None = None
    requester = attributes.user.get("username", "")
    last_mode = last_modes.get(requester)
    for mode in sorted(_MODES, key=lambda mode: mode != last_mode):
        if not _MODES[mode](wanted, attributes.user):
            continue
        try:
            if mode:
                _check(
                    authorizer, attributes._replace(verb=f"impersonate-on:{mode}:{attributes.verb}")
                )
            user = _Impersonation(authorizer, attributes.user, wanted, mode).user()
            if len(last_modes) < MAX_MODES or requester in last_modes:
                last_modes[requester] = mode
            return user
        except errors.Forbidden as error:
            first_error = first_error or error

    assert first_error is not None
    raise first_error


def wanted_user(request: HttpRequest) -> Object | None:
    """Return the user that the headers describe, None where they describe none. Raises
    BadRequest."""

    def values(header: str) -> list[str]:
        return [_as_text(value) for value in request.header_values(header)]

    name, uid = (next(iter(values(header)), "") for header in (IMPERSONATE_USER, IMPERSONATE_UID))
    groups = values(IMPERSONATE_GROUP)
    extra: dict[str, list[str]] = {}
    for header in request.headers:
        if header.startswith(IMPERSONATE_EXTRA):
            key = header.removeprefix(IMPERSONATE_EXTRA)
            if not re.search(
                "%(?![0-9a-fA-F]{2})", key
            ):  # a key with a wrong escape stays as it is
                key = unquote(key)
            extra.setdefault(_as_text(key), []).extend(values(header))

    if name:
        return new_user(name, groups, uid, extra)
    if uid or groups or extra:
        entries = ", ".join(
            f"{quote(key)}:{_go_slice(value)}" for key, value in sorted(extra.items())
        )
        shown_extra = f"map[string][]string{{{entries}}}" if extra else "map[string][]string(nil)"
        shown = (
            f'&user.DefaultInfo{{Name:"", UID:{quote(uid)}, Groups:{_go_slice(groups)}, '
            f"Extra:{shown_extra}}}"
        )
        raise errors.BadRequest(f"requested {shown} without impersonating a user name")

    return None


def _as_text(value: str) -> str:
    """Return a value of a header with the replacement character for bytes that are no UTF-8, as
    Go's JSON has it."""
    return value.encode(errors="surrogateescape").decode(errors="replace")


def _go_slice(values: list[str]) -> str:
    return f"[]string{{{', '.join(map(quote, values))}}}" if values else "[]string(nil)"


def _check(authorizer: Authorizer, attributes: AttributesRecord) -> None:
    decision = authorizer.authorize(attributes)
    if not decision.allowed:
        raise attributes.forbidden(decision.reason)


def _only_name(wanted: Object) -> bool:
    return not (wanted.get("uid") or wanted["groups"] or wanted.get("extra"))


def node_of(username: str) -> str:
    """Return the name of the node that a user is, "" for other users."""
    name = username.removeprefix(NODE_PREFIX)
    return "" if name == username or names.dns1123_subdomain(name) else name


def _is_node_of(requester: Object, node: str) -> bool:
    """Tell whether a requester is the service account of a pod that runs on a node."""
    if not node or split_account(requester.get("username", "")) is None:
        return False
    return bool((requester.get("extra") or {}).get(NODE_NAME) == [node])


# The modes in the order in which they are tried, with what they apply to; "" is the one without
# constraints.
_MODES: dict[str, Callable[[Object, Object], bool]] = {
    "associated-node": lambda wanted, requester: (
        _only_name(wanted) and _is_node_of(requester, node_of(wanted["username"]))
    ),
    "arbitrary-node": lambda wanted, _: _only_name(wanted) and node_of(wanted["username"]) != "",
    "serviceaccount": lambda wanted, _: (
        _only_name(wanted) and split_account(wanted["username"]) is not None
    ),
    "user-info": lambda wanted, _: (
        not node_of(wanted["username"]) and split_account(wanted["username"]) is None
    ),
    "": lambda wanted, _: True,
}


class _Impersonation:
    """The checks of one mode, for each name, uid, group and extra value that a requester wants to
    have."""

    def __init__(
        self, authorizer: Authorizer, requester: Object, wanted: Object, mode: str
    ) -> None:
        self._authorizer = authorizer
        self._wanted = wanted
        self._mode = mode
        self._own_group = "authentication.k8s.io"
        self._attributes = AttributesRecord(
            requester,
            f"impersonate:{mode}" if mode else "impersonate",
            self._own_group if mode else "",
        )

    def user(self) -> Object:
        """Return the user as impersonated. Raises Forbidden."""
        wanted = self._wanted
        user = self._check_name(wanted["username"])
        if uid := wanted.get("uid"):
            self._check(api_group=self._own_group, resource="uids", name=uid)
        if wanted["groups"]:
            self._check_groups(wanted["groups"])
        if extra := wanted.get("extra"):
            self._check_extra(extra)
        return with_implied_groups(user)

    def _check(self, **attributes: Any) -> None:
        _check(self._authorizer, self._attributes._replace(**attributes))

    def _check_name(self, name: str) -> Object:
        user = self._wanted
        if self._mode and (node := node_of(name)):
            self._check(resource="nodes", name="*" if self._mode == "associated-node" else node)
            return {**user, "groups": [NODES_GROUP, ALL_AUTHENTICATED]}
        if account := split_account(name):
            self._check(resource="serviceaccounts", namespace=account[0], name=account[1])
        else:
            self._check(resource="users", name=name)
        return user

    def _check_groups(self, groups: list[str]) -> None:
        about_groups = self._attributes._replace(resource="groups")
        if self._mode and "" in groups:
            raise about_groups.forbidden("impersonating the empty string group is not allowed")
        if self._mode and PRIVILEGED_GROUP in groups:
            raise about_groups._replace(name=PRIVILEGED_GROUP).forbidden(
                "impersonating the system:masters group is not allowed"
            )

        if (
            self._mode
            and len(groups) >= MANY_CHECKS
            and self._allows(about_groups._replace(name="*"))
        ):
            return

        for group in groups:
            self._check(resource="groups", name=group)

    def _check_extra(self, extra: Mapping[str, list[str]]) -> None:
        about_extra = self._attributes._replace(api_group=self._own_group, resource="userextras")
        if self._mode and (problem := _wrong_extra(extra)):
            raise about_extra.forbidden(problem)
        is_large = len(extra) >= MANY_CHECKS or sum(map(len, extra.values())) >= MANY_CHECKS
        if (
            self._mode
            and is_large
            and self._allows(about_extra._replace(subresource="*", name="*"))
        ):
            return

        for key, values in extra.items():
            for value in values:
                self._check(
                    api_group=self._own_group, resource="userextras", subresource=key, name=value
                )

    def _allows(self, attributes: AttributesRecord) -> bool:
        return self._authorizer.authorize(attributes).allowed


def _wrong_extra(extra: Mapping[str, list[str]]) -> str:
    """Return the reason why extra values cannot be impersonated with constraints, "" where they
    can."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if problem := _wrong_domain_prefixed_path(key):
            return f"impersonating an invalid key in extra is not allowed: {problem}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _wrong_domain_prefixed_path(key: str) -> str:
    """Return the error of a key that is not a domain with a path
    (``validation.IsDomainPrefixedPath``)."""
    domain, slash, path = key.partition("/")
    text = f"extra.key: Invalid value: {quote(key)}: "
    if not slash or not domain or not path:
        return f'{text}must be a domain-prefixed path (such as "acme.io/foo")'
    if problems := names.dns1123_subdomain(domain):
        return f"extra.key: Invalid value: {quote(domain)}: {', '.join(problems)}"
    if not re.fullmatch(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", path):
        return f"extra.key: Invalid value: {quote(path)}: Invalid path"
    return ""
