"""Edits of files as admission would have judged them, had they been requests.

Nobody can refuse what stands in a file, and its object counts. So what a policy, a quota, a
LimitRange or a level of pod security would have refused is a warning, in the words of the refusal.
Webhooks are not asked: a look at files calls nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object, uid_of
from kubepy.apiserver.requests.admission import MUTATING_WEBHOOKS, QUOTAS, VALIDATING_WEBHOOKS
from kubepy.apiserver.transaction import PODS
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.client import Client
    from kubepy.storage.store import Store, Transaction

BY_POLICY = (
    "denied request"  # in the words of every ValidatingAdmissionPolicy, whatever reason it gives
)
_OF_SERVER = (
    "resourceVersion",
    "generation",
    "managedFields",
)  # metadata that an edit is not about


class EditedObject(NamedTuple):
    """An object before and after the edit of its file. ``old``: None where the file is new."""

    old: Object | None
    new: Object

    @property
    def is_creation(self) -> bool:
        """Whether the object is another one than before."""
        return self.old is None or uid_of(self.old) != uid_of(self.new)

    def is_of_status_alone(self) -> bool:
        """Tell whether nothing has changed that a request could be refused for."""
        return self.old is not None and _as_sent(self.old) == _as_sent(self.new)


def refusals(
    store: Store, client: Client, edits: Mapping[Key, EditedObject]
) -> Iterator[tuple[Key, str]]:
    """Yield the edits that admission would have refused, each with the words of the refusal.

    They are taken back and made again one after the other, so that each leaves less of a quota to
    the next. An object that has gone again since is left out.

    :param store: a fork of the cluster, which is used up.
    :param client: the client of the fork.
    """
    with store.transaction() as transaction:
        present = {key: edit for key, edit in edits.items() if transaction.get(key) is not None}
        for key, edit in present.items():
            _take_back(transaction, key, edit)
        _forget_webhooks(transaction)
        _forget_usage(transaction)
    for key in sorted(present, key=_order):
        if refusal := _refusal(client, key, present[key]):
            yield key, refusal


def _take_back(transaction: Transaction, key: Key, edit: EditedObject) -> None:
    """Let an object be as it was before its edit."""
    if edit.old is None or edit.is_creation:
        transaction.delete(key)
    else:
        transaction.update(key, dict(edit.old))


def _forget_webhooks(transaction: Transaction) -> None:
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        for configuration in transaction.list(resource).objects:
            transaction.delete(Key(resource, "", configuration["metadata"]["name"]))


def _forget_usage(transaction: Transaction) -> None:
    """Let the usage of all quotas be counted anew: the controller may have counted the edits
    already."""
    for quota in transaction.list(QUOTAS).objects:
        metadata = quota["metadata"]
        uncounted = {name: value for name, value in quota.items() if name != "status"}
        transaction.update(Key(QUOTAS, metadata["namespace"], metadata["name"]), uncounted)


def _order(key: Key) -> tuple[bool, bool]:
    """Put namespaces and what else is the cluster's first, and pods, which need the most, last."""
    return bool(key.namespace), key.resource == PODS


def _refusal(client: Client, key: Key, edit: EditedObject) -> str:
    """Make an edit as a request; return the words with which admission refuses it, "" if it does
    not."""
    write = client.create if edit.is_creation else client.update
    try:
        write(key.resource, _as_sent(edit.new), namespace=key.namespace)
    except errors.Forbidden as refusal:
        return refusal.message
    except (
        errors.Status
    ) as refusal:  # the rules of the kind have been kept, or the file has a problem
        return refusal.message if BY_POLICY in refusal.message else ""
    return ""


def _as_sent(obj: Object) -> Object:
    """Return an object as a client would send it: without its status, and what else the server
    alone sets."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _OF_SERVER}
    return {
        name: value for name, value in {**obj, "metadata": metadata}.items() if name != "status"
    }
