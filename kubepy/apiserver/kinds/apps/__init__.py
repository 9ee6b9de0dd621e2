"""The kinds of the group apps."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import WARN_OF_TEMPLATE, ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.apps import printers, strategy

KINDS: dict[str, ServedKind] = {
    "controllerrevisions": ServedKind(
        lambda: strategy.ControllerRevisionStrategy,
        lambda: printers.print_controller_revision,
    ),
    "daemonsets": ServedKind(
        lambda: strategy.DaemonSetStrategy,
        lambda: printers.print_daemon_set,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "deployments": ServedKind(
        lambda: strategy.DeploymentStrategy,
        lambda: printers.print_deployment,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "replicasets": ServedKind(
        lambda: strategy.ReplicaSetStrategy,
        lambda: printers.print_replica_set,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "statefulsets": ServedKind(
        lambda: strategy.StatefulSetStrategy,
        lambda: printers.print_stateful_set,
        validating=(WARN_OF_TEMPLATE,),
    ),
}
