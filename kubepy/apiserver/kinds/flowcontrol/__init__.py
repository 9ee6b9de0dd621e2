"""The kinds of the group flowcontrol.apiserver.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.flowcontrol import printers, strategy

KINDS: dict[str, ServedKind] = {
    "flowschemas": ServedKind(
        lambda: strategy.FlowSchemaStrategy,
        lambda: printers.print_flow_schema,
    ),
    "prioritylevelconfigurations": ServedKind(
        lambda: strategy.PriorityLevelConfigurationStrategy,
        lambda: printers.print_priority_level,
    ),
}
