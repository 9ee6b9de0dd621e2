"""The filters of the default profile, in upstream's order (``apis/config/v1/default_plugins.go``).

The order shows: a node is rejected by the first plugin that minds it. Plugins for which there is nothing here to look
at are left out: DynamicResources (ResourceClaim), NodeDeclaredFeatures.
"""

from kubepy.scheduler.framework import Plugin
from kubepy.scheduler.plugins.interpodaffinity import InterPodAffinity
from kubepy.scheduler.plugins.nodes import NodeAffinity, NodeName, NodePorts, NodeUnschedulable, TaintToleration
from kubepy.scheduler.plugins.resources import NodeResourcesFit
from kubepy.scheduler.plugins.topologyspread import PodTopologySpread
from kubepy.scheduler.plugins.volumelimits import NodeVolumeLimits
from kubepy.scheduler.plugins.volumes import VolumeBinding, VolumeRestrictions, VolumeZone

PLUGINS: tuple[Plugin, ...] = (
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

__all__ = ["PLUGINS"]
