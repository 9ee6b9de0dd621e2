"""Gives a ClusterRole that aggregates others their rules
(``pkg/controller/clusterroleaggregation``)."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.meta import name_of
from kubepy.api.objects.rbac import aggregated_rules
from kubepy.apiserver.request import APPLY_PATCH, Patch, PatchOptions
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

CLUSTER_ROLES = "clusterroles.rbac.authorization.k8s.io"


class ClusterRoleAggregationController:
    """Reconciles ClusterRoles with an ``aggregationRule``."""

    name = "clusterrole-aggregation-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {CLUSTER_ROLES: self._role_changed}

    def _role_changed(self, event: WatchEvent) -> None:
        """Reconcile all roles that aggregate: the changed one may be, or may have been, part of any
        of them."""
        for role in self._informers.list(CLUSTER_ROLES):
            if "aggregationRule" in role:
                self.queue.add(Key(CLUSTER_ROLES, "", name_of(role)))

    def sync(self, key: Key) -> None:
        role = self._informers.get(*key)
        if role is None or "aggregationRule" not in role:
            return
        roles = [*self._informers.list(CLUSTER_ROLES), *self._client.list_implied(CLUSTER_ROLES)]
        rules = aggregated_rules(role, roles)
        if rules != (role.get("rules") or []):
            config = {
                "apiVersion": role["apiVersion"],
                "kind": role["kind"],
                "metadata": {"name": key.name},
                "rules": rules,
            }
            self._client.patch(
                CLUSTER_ROLES,
                key.name,
                Patch(APPLY_PATCH, config),
                options=PatchOptions(field_manager=self.name, force=True),
            )
