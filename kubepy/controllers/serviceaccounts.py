"""Give each namespace its ServiceAccount ``default``, and tokens to Secrets that ask for one.

Both controllers run in clusters with ``bootstrap: full``. Upstream:
``pkg/controller/serviceaccount``, ``pkg/serviceaccount`` (the claims of tokens).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.errors import AlreadyExists, Conflict, NotFound
from kubepy.api.meta import annotations_of, name_of, namespace_of, uid_of
from kubepy.apiserver.bootstrap import DEFAULT, default_account, root_ca
from kubepy.apiserver.implied import is_active
from kubepy.apiserver.request import DeleteOptions
from kubepy.apiserver.tokens import legacy_token
from kubepy.runtime.informers import NAMESPACES, SECRETS, SERVICE_ACCOUNTS, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent, enqueue_object

if TYPE_CHECKING:
    from kubepy.api.typed import Secret, ServiceAccount

ACCOUNT_NAME, ACCOUNT_UID = (
    "kubernetes.io/service-account.name",
    "kubernetes.io/service-account.uid",
)
TOKEN_SECRET = "kubernetes.io/service-account-token"


class ServiceAccountsController:
    """Reconciles namespaces: an active one has a ServiceAccount ``default``."""

    name = "serviceaccount-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {NAMESPACES: enqueue_object(self.queue), SERVICE_ACCOUNTS: self._account_changed}

    def _account_changed(self, event: WatchEvent) -> None:
        if event.new is None:
            self.queue.add(Key(NAMESPACES, "", event.key.namespace))

    def sync(self, key: Key) -> None:
        namespace = self._informers.get(*key)
        if namespace is None or not is_active(namespace):
            return
        if self._informers.get(SERVICE_ACCOUNTS, key.name, DEFAULT) is None:
            with suppress(AlreadyExists):
                self._client.create(SERVICE_ACCOUNTS, default_account(key.name), namespace=key.name)


# --- tokens ---------------------------------------------------------------------------------------


class TokensController:
    """Reconciles Secrets of the type for tokens with the accounts that they name."""

    name = "serviceaccount-token-controller"

    def __init__(self, context: Context) -> None:
        self._secrets = context.informers.lister(SECRETS)
        self._accounts = context.informers.lister(SERVICE_ACCOUNTS)
        self._client = context.client
        self._secret_client = ResourceClient(context.client, SECRETS)
        self._account_client = ResourceClient(context.client, SERVICE_ACCOUNTS)
        self._deleted: dict[Key, Secret] = {}  # their accounts may still refer to them
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {SERVICE_ACCOUNTS: self._account_changed, SECRETS: self._secret_changed}

    def _account_changed(self, event: WatchEvent) -> None:
        _, namespace, name = event.key
        for secret in self._secrets.list(namespace):
            if is_token(secret) and annotations_of(secret).get(ACCOUNT_NAME) == name:
                self.queue.add(Key(SECRETS, namespace, name_of(secret)))

    def _secret_changed(self, event: WatchEvent) -> None:
        secret = cast("Secret", event.new or event.old)
        if not is_token(secret):
            return
        if event.new is None:
            self._deleted[event.key] = secret
        self.queue.add(event.key)

    def sync(self, key: Key) -> None:
        secret = self._secrets.get(key.namespace, key.name)
        deleted = self._deleted.pop(key, None)
        if secret is None:
            account = self._account_of(deleted) if deleted is not None else None
            references = (account or {}).get("secrets") or []
            kept = [reference for reference in references if reference.get("name") != key.name]
            if account is not None and kept != references:
                self._account_client.update({**account, "secrets": kept})
            return

        if not is_token(secret):
            return
        account = self._account_of(secret)
        if account is None:
            with suppress(NotFound, Conflict):
                self._client.delete(
                    SECRETS,
                    key.name,
                    namespace=key.namespace,
                    options=DeleteOptions(uid=uid_of(secret)),
                )
            return

        filled = with_token(secret, account)
        if filled != secret:
            self._secret_client.update(filled)

    def _account_of(self, secret: Secret) -> ServiceAccount | None:
        """Return the account that a Secret names, if it is still the same one."""
        annotations = annotations_of(secret)
        account = self._accounts.get(namespace_of(secret), annotations.get(ACCOUNT_NAME, ""))
        if account is None or annotations.get(ACCOUNT_UID) not in (None, "", uid_of(account)):
            return None
        return account


def is_token(secret: Secret) -> bool:
    return secret.get("type") == TOKEN_SECRET


def with_token(secret: Secret, account: ServiceAccount) -> Secret:
    """Return a Secret with the CA, the namespace and a token, as far as they are missing (or the CA
    another one)."""
    data = dict(secret.get("data") or {})
    missing = {"ca.crt": encoded(root_ca())}
    missing |= {} if data.get("namespace") else {"namespace": encoded(namespace_of(secret))}
    missing |= (
        {}
        if data.get("token")
        else {"token": encoded(legacy_token(cast("Any", secret), cast("Any", account)))}
    )
    if data == {**data, **missing}:
        return secret
    annotations = {
        **annotations_of(secret),
        ACCOUNT_NAME: name_of(account),
        ACCOUNT_UID: uid_of(account),
    }
    return {
        **secret,
        "data": {**data, **missing},
        "metadata": {**secret["metadata"], "annotations": annotations},
    }


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
