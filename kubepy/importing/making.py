"""The cluster that is made of the objects of a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from kubepy.api import errors
from kubepy.api.clock import format_exact_time, format_time
from kubepy.api.meta import Object, nested_map
from kubepy.api.objects.nodes import get_condition
from kubepy.apiserver.client import CRDS
from kubepy.apiserver.cluster import VOLATILE
from kubepy.apiserver.settings import ALLOWS, IMPLIED, UNKNOWN
from kubepy.controllers.nodelifecycle import REGISTERED_UNTIL
from kubepy.controlplane.open import ImportedObject, cluster_of_objects
from kubepy.importing.absent import AbsentFindings, find_absent, namespaces_of
from kubepy.importing.errors import SourceError
from kubepy.importing.heldkeys import keys_value
from kubepy.importing.nodes import node_of_pods, uid_in_references
from kubepy.importing.podlogs import log_values
from kubepy.importing.replicasets import REPLICA_SETS, present_replica_sets
from kubepy.importing.secrets import has_values, with_placeholders
from kubepy.importing.taking import RefusedObject, TakenObjects, Taker, revision_of
from kubepy.importing.times import newest_time
from kubepy.importing.words import full_name, one_line
from kubepy.lazy import lazy_imports
from kubepy.storage import Key

with lazy_imports():
    from kubepy.importing import derived, learning

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.importing.documents import SourceContent
    from kubepy.importing.learning import LearnedRule

NODES, PODS, SECRETS = "nodes", "pods", "secrets"
# The resources by which it is decided what a cluster has without a source that holds it.
IMPLIED_BASIS = frozenset((*IMPLIED, "namespaces", CRDS))
WEBHOOK_CONFIGURATIONS = (
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
)
Show = Callable[[str, int], None]


class ImportOptions(NamedTuple):
    """The choices of the user.

    :ivar keeps_secrets: the values of Secrets are kept.
    :ivar learns: what pods did becomes rules by which they go on doing it.
    :ivar now: the moment at which a live cluster was asked; None: the newest time of the source.
    """

    keeps_secrets: bool = False
    learns: bool = False
    now: datetime | None = None


class MadeObjects(NamedTuple):
    """The objects that the source does not hold, and the cluster cannot do without.

    :ivar derived: by resource, how many objects controllers have made of the others.
    """

    namespaces: list[str]
    nodes: list[str]
    derived: Counter[str]


class ImportedCluster(NamedTuple):
    """A cluster in memory, and how it came about.

    :ivar replaced: how many Secrets have placeholders for values.
    :ivar learned: the rules by which pods go on doing what they did.
    """

    cluster: LocalCluster
    taken: TakenObjects
    objects: Mapping[Key, Object]
    absent: AbsentFindings
    made: MadeObjects
    replaced: int
    settings: Mapping[str, Any]
    learned: list[LearnedRule]

    @property
    def brought(self) -> set[Key]:
        """The keys of the objects that are there by this import."""
        return {*self.objects, *self.taken.manifests}


def make_cluster(content: SourceContent, options: ImportOptions, show: Show) -> ImportedCluster:
    """Make a cluster in memory of what was read. Raises SourceError where there is nothing to make
    it of."""
    taken = Taker().take(content.objects, lambda number: show("taking objects", number))
    if not taken.objects and not taken.manifests:
        raise SourceError(_nothing(taken, content))
    objects = {key: taken.objects[key] for key in sorted(taken.objects)}
    replaced = 0
    if not options.keeps_secrets:
        replaced = _replace_secrets(objects) + _replace_secrets(taken.manifests)
    now = options.now or newest_time(objects.items()) or datetime.now(UTC).replace(microsecond=0)
    _complete_times(objects, now)
    replica_sets = dict(present_replica_sets(objects))
    objects |= replica_sets
    show("looking for what is absent", 0)
    basis = {key: obj for key, obj in objects.items() if key.resource in IMPLIED_BASIS}
    scratch = cluster_of_objects(_numbered(basis, now), {"clock": format_exact_time(now)}, {})
    scratch.bootstrap()
    implied = dict(scratch.implied_objects())
    everything = {**implied, **taken.manifests, **objects}
    pods_by_absent_node = _pods_by_absent_node(objects, taken)
    absent = find_absent(everything, scratch.scheme).without_nodes(pods_by_absent_node)
    learned: list[LearnedRule] = []
    if options.learns:
        show("learning what pods did", 0)
        learned = learning.learned_rules([*objects.values()], now)
    settings = _settings(
        objects,
        absent,
        now,
        learned,
    )
    values = {**log_values(content.logs, objects, now), **_registered(objects, now)}
    cluster = cluster_of_objects(_numbered(objects, now), settings, values)
    made = _complete(
        cluster,
        [*objects, *taken.manifests],
        taken,
        pods_by_absent_node,
        show,
    )
    if replica_sets:
        made.derived[REPLICA_SETS] = len(replica_sets)
    imported = ImportedCluster(
        cluster,
        taken,
        objects,
        absent,
        made,
        replaced,
        settings,
        learned,
    )
    cluster.store.set_values(keys_value(imported.brought))
    return imported


def _registered(objects: Mapping[Key, Object], now: datetime) -> dict[str, str]:
    """Return the value by which no node counts as a new one."""
    times = [
        obj["metadata"]["creationTimestamp"]
        for key, obj in objects.items()
        if key.resource == NODES
    ]
    return {REGISTERED_UNTIL: max(times, default=format_time(now))}


def _complete_times(objects: dict[Key, Object], now: datetime) -> None:
    """Give objects a time at which they were made that say none."""
    for key, obj in objects.items():
        if not obj["metadata"].get("creationTimestamp"):
            metadata = {**obj["metadata"], "creationTimestamp": format_time(now)}
            objects[key] = {**obj, "metadata": metadata}


def _nothing(taken: TakenObjects, content: SourceContent) -> str:
    if not taken.refused:
        files = [*content.unread, *content.without_objects]
        if files:
            return f"the source holds no objects: {files[0]}"
        return "the source holds no objects"
    first: RefusedObject = taken.refused[0]
    what = f"{first.kind} {first.name}".rstrip()
    return f"the source holds no objects that can be taken: {what}: {first.reason}"


def _replace_secrets(objects: dict[Key, Object]) -> int:
    """Put placeholders in the places of the values of Secrets; return the number of these."""
    secrets = [key for key, obj in objects.items() if key.resource == SECRETS and has_values(obj)]
    for key in secrets:
        objects[key] = with_placeholders(objects[key])
    return len(secrets)


def _numbered(objects: Mapping[Key, Object], now: datetime) -> list[ImportedObject]:
    """Return objects with their resourceVersions; those that share one, or have none, get later
    ones, in the order in which they were made."""
    holders = Counter(revision_of(obj) for obj in objects.values())
    last = max(holders, default=0)
    later = sorted(
        (key for key, obj in objects.items() if not _is_alone(revision_of(obj), holders)),
        key=lambda key: (objects[key]["metadata"].get("creationTimestamp") or "", key),
    )
    numbers = {key: last + position for position, key in enumerate(later, 1)}
    numbered = []
    for key, obj in objects.items():
        seconds = VOLATILE.get(key.resource)
        expires = None if seconds is None else now.timestamp() + seconds
        numbered.append(
            ImportedObject(
                key,
                numbers.get(key) or revision_of(obj),
                obj,
                expires,
            )
        )
    return numbered


def _is_alone(revision: int, holders: Counter[int]) -> bool:
    return revision > 0 and holders[revision] == 1


def _settings(
    objects: Mapping[Key, Object], absent: AbsentFindings, now: datetime, learned: list[LearnedRule]
) -> dict[str, Any]:
    """Return the settings for ``kubepy.yaml``."""
    settings: dict[str, Any] = {"clock": format_exact_time(now)}
    kubelet: dict[str, Any] = {"usage": UNKNOWN}  # no source holds metrics
    silent = [
        key.name for key, obj in objects.items() if key.resource == NODES and not _is_reported(obj)
    ]
    if silent:
        kubelet["silentNodes"] = silent
    if learned:
        kubelet["rules"] = [rule.as_setting() for rule in learned]
    settings["kubelet"] = kubelet
    hooks = webhooks_of(objects)
    if hooks:
        settings["webhooks"] = hooks
    held_open = (*absent.owners, *absent.needed, *absent.remaining)
    entries = [entry.as_setting() for entry in held_open]
    if entries:
        settings["absent"] = entries
    return settings


def webhooks_of(objects: Mapping[Key, Object]) -> dict[str, str]:
    """Return the value of ``webhooks`` for a source: the Services, and the beginnings of the URLs,
    of its admission webhooks, whose programs are not at hand."""
    answers: dict[str, str] = {}
    for key, obj in objects.items():
        if key.resource not in WEBHOOK_CONFIGURATIONS:
            continue
        for hook in obj.get("webhooks") or ():
            config = hook.get("clientConfig") or {}
            service = config.get("service")
            if service is not None:
                answers[f"{service.get('namespace')}/{service.get('name')}"] = ALLOWS
            elif config.get("url"):
                url = urlsplit(config["url"])
                answers[f"{url.scheme}://{url.netloc}"] = ALLOWS
    return answers


def _is_reported(node: Object) -> bool:
    """Tell whether a node is ready, or nothing is known of it."""
    condition = get_condition(node, "Ready")
    return condition is None or condition.get("status") == "True"


def _complete(
    cluster: LocalCluster,
    keys: Collection[Key],
    taken: TakenObjects,
    pods_by_absent_node: Mapping[str, list[Object]],
    show: Show,
) -> MadeObjects:
    """Make what a cluster cannot do without: namespaces, the nodes of pods where the source has
    none, objects that no server has made yet, and what controllers derive.

    :param keys: all that the source holds.
    """
    cluster.bootstrap()
    namespaces = _make_namespaces(cluster, keys)
    nodes = _make_nodes(cluster, pods_by_absent_node)
    _create_manifests(cluster, taken, show)
    show("deriving objects", 0)
    counts = derived.complete(cluster, {key.resource for key in keys})
    return MadeObjects(namespaces, nodes, counts)


def _make_namespaces(cluster: LocalCluster, keys: Iterable[Key]) -> list[str]:
    made = []
    with cluster.client.joined():
        for name in namespaces_of(keys):
            if cluster.store.get(Key("namespaces", "", name)) is None:
                cluster.client.create("namespaces", {"metadata": {"name": name}})
                made.append(name)
    return made


def _pods_by_absent_node(
    objects: Mapping[Key, Object], taken: TakenObjects
) -> dict[str, list[Object]]:
    """Return the pods by the nodes that they name, where the source holds no nodes at all; none
    where it holds any."""
    if any(key.resource == NODES for key in (*objects, *taken.manifests)):
        return {}
    pods_by_node: dict[str, list[Object]] = {}
    for key, obj in objects.items():
        name = nested_map(obj, "spec").get("nodeName") if key.resource == PODS else None
        if name:
            pods_by_node.setdefault(name, []).append(obj)
    return pods_by_node


def _make_nodes(cluster: LocalCluster, pods_by_node: Mapping[str, list[Object]]) -> list[str]:
    """Make the nodes of pods; without them the pods would be collected. A node takes the uid by
    which its mirror pods name it as their owner."""
    with cluster.client.joined():
        for name in sorted(pods_by_node):
            node = node_of_pods(name, pods_by_node[name], cluster.clock.now())
            created = cluster.client.create(NODES, node)
            # admission has tainted it, as it does with each new node
            cluster.client.update(NODES, {**created, "spec": {}})
    with cluster.store.transaction() as transaction:
        for name, pods in pods_by_node.items():
            uid = uid_in_references(name, pods)
            if uid:
                node = cluster.client.get(NODES, name)
                metadata = {**node["metadata"], "uid": uid}
                transaction.update(Key(NODES, "", name), {**node, "metadata": metadata})
    return sorted(pods_by_node)


def _create_manifests(cluster: LocalCluster, taken: TakenObjects, show: Show) -> None:
    """Create the objects that no server has made, as a client would. Those that are refused are
    listed."""
    order = sorted(taken.manifests, key=lambda key: (key.namespace != "", key))
    for number, key in enumerate(order, 1):
        show("creating objects", number)
        obj = taken.manifests[key]
        try:
            cluster.client.create(key.resource, obj, namespace=key.namespace)
        except errors.AlreadyExists:
            continue
        except errors.Status as status:
            resource = cluster.scheme.by_key(key.resource)
            name = full_name(key.namespace, key.name)
            refusal = RefusedObject(resource.qualified_kind, name, one_line(status.message))
            taken.refused.append(refusal)
