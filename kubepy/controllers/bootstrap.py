"""Keep the objects that a cluster with ``bootstrap: full`` always has: a deleted one comes back.

These are the CA's certificate in each namespace
(``pkg/controller/certificates/rootcacertpublisher``) and what the API server itself makes
(``pkg/controlplane/controller``): the system namespaces, the Service ``kubernetes`` with its
endpoints, the ServiceCIDR, the ConfigMap of the tracking of tokens. Bootstrap roles come back only
when the control plane starts (:func:`kubepy.apiserver.cluster.reconcile_rbac`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from kubepy.api.clock import Clock
from kubepy.api.errors import AlreadyExists
from kubepy.api.meta import Object, annotations_of, labels_of, name_of, namespace_of
from kubepy.apiserver import bootstrap
from kubepy.apiserver.implied import is_active
from kubepy.runtime.informers import CONFIG_MAPS, ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, SERVICES
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent, enqueue_object

READY_MESSAGE = "Kubernetes default Service CIDR is ready"


class RootCACertPublisher:
    """Reconciles namespaces: each has the ConfigMap ``kube-root-ca.crt``."""

    name = "root-ca-certificate-publisher-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {
            NAMESPACES: enqueue_object(self.queue, is_active),
            CONFIG_MAPS: self._config_map_changed,
        }

    def _config_map_changed(self, event: WatchEvent) -> None:
        if event.key.name == bootstrap.ROOT_CA_CONFIG_MAP:
            self.queue.add(Key(NAMESPACES, "", event.key.namespace))

    def sync(self, key: Key) -> None:
        namespace = self._informers.get(*key)
        if namespace is None or not is_active(namespace):
            return
        wanted = bootstrap.root_ca_config_map(key.name)
        present = self._informers.get(CONFIG_MAPS, key.name, bootstrap.ROOT_CA_CONFIG_MAP)
        if present is None:
            with suppress(AlreadyExists):
                self._client.create(CONFIG_MAPS, wanted, namespace=key.name)
        elif present.get("data") != wanted["data"] or not annotations_of(present).get(
            bootstrap.DESCRIPTION
        ):
            annotations = {**annotations_of(present), **wanted["metadata"]["annotations"]}
            metadata = {**present["metadata"], "annotations": annotations}
            self._client.update(
                CONFIG_MAPS,
                {**present, "data": wanted["data"], "metadata": metadata},
                namespace=key.name,
            )


class KubernetesServiceController:
    """Reconciles the objects that the API server itself makes; upstream does so every few
    seconds."""

    name = "kubernetes-service-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock: Clock = context.clock
        self._subnet = context.client.settings.networking.service_subnet
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        kept = (SERVICES, ENDPOINTS, ENDPOINT_SLICES, CONFIG_MAPS, bootstrap.SERVICE_CIDRS)
        return {NAMESPACES: self._namespace_changed, **dict.fromkeys(kept, self._object_changed)}

    def _namespace_changed(self, event: WatchEvent) -> None:
        if event.key.name in bootstrap.SYSTEM_NAMESPACES and (
            event.old is None or event.new is None
        ):
            self.queue.add(Key(NAMESPACES, "", bootstrap.DEFAULT))

    def _object_changed(self, event: WatchEvent) -> None:
        if event.key.name in (bootstrap.KUBERNETES, bootstrap.TOKEN_TRACKING):
            self.queue.add(Key(NAMESPACES, "", bootstrap.DEFAULT))

    def sync(self, key: Key) -> None:
        """Make what is missing; endpoints and ServiceCIDR are put right as well, the Service only
        at its creation."""
        for name in bootstrap.SYSTEM_NAMESPACES:
            if self._informers.get(NAMESPACES, "", name) is None:
                self._create(NAMESPACES, {"metadata": {"name": name}})
        self._keep(SERVICES, bootstrap.kubernetes_service(self._subnet))
        self._keep(ENDPOINTS, bootstrap.kubernetes_endpoints(), "subsets")
        self._keep(ENDPOINT_SLICES, bootstrap.kubernetes_endpoint_slice(), "endpoints", "ports")
        self._keep(CONFIG_MAPS, bootstrap.token_tracking(self._clock.timestamp().partition("T")[0]))
        self._keep(bootstrap.SERVICE_CIDRS, bootstrap.service_cidr(self._subnet))
        present = self._informers.get(bootstrap.SERVICE_CIDRS, "", bootstrap.KUBERNETES)
        if present is not None and not (present.get("status") or {}).get("conditions"):
            condition = {
                "lastTransitionTime": self._clock.timestamp(),
                "message": READY_MESSAGE,
                "reason": "",
                "status": "True",
                "type": "Ready",
            }
            self._client.update(
                bootstrap.SERVICE_CIDRS,
                {**present, "status": {"conditions": [condition]}},
                subresource="status",
            )

    def _keep(self, resource: str, wanted: Object, *fields: str) -> None:
        """Create an object that is missing; in one that is there, put these fields and the labels
        right."""
        present = self._informers.get(resource, namespace_of(wanted), name_of(wanted))
        if present is None:
            self._create(resource, wanted)
            return
        labels = {**labels_of(present), **labels_of(wanted)}
        if fields and (
            (labels != labels_of(present))
            or any(present.get(field) != wanted[field] for field in fields)
        ):
            changed = {
                **present,
                **{field: wanted[field] for field in fields},
                "metadata": {**present["metadata"], "labels": labels},
            }
            self._client.update(resource, changed, namespace=namespace_of(wanted))

    def _create(self, resource: str, obj: Object) -> None:
        with suppress(AlreadyExists):
            self._client.create(resource, obj, namespace=namespace_of(obj))
