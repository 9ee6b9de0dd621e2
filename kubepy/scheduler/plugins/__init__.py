"""The filters of the default profile, in upstream's order (``apis/config/v1/default_plugins.go``).

The order shows: a node's message is that of the first plugin that rejects it. Plugins for objects
that kubepy does not simulate are left out: DynamicResources (ResourceClaim), NodeDeclaredFeatures.
"""

from kubepy.scheduler.framework import FilterPlugin
from kubepy.scheduler.plugins.interpodaffinity import InterPodAffinity
from kubepy.scheduler.plugins.nodes import (
    NodeAffinity,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
)
from kubepy.scheduler.plugins.resources import NodeResourcesFit
from kubepy.scheduler.plugins.topologyspread import PodTopologySpread
from kubepy.scheduler.plugins.volumelimits import NodeVolumeLimits
from kubepy.scheduler.plugins.volumes import VolumeBinding, VolumeRestrictions, VolumeZone

FILTER_PLUGINS: tuple[FilterPlugin, ...] = (
    NodeUnschedulable(),
    NodeName(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    NodeResourcesFit(),
    VolumeRestrictions(),
    NodeVolumeLimits(),
    VolumeBinding(),
    VolumeZone(),
    PodTopologySpread(),
    InterPodAffinity(),
)

__all__ = ["FILTER_PLUGINS"]
