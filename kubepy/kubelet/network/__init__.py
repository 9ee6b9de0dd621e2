"""The network of the simulated cluster, as a function of its objects (docs/network.md).

No packet is sent. ``connections`` answers what a process of a pod, a node or somebody outside of
the cluster asks. ``names`` has DNS (CoreDNS with kubeadm's configuration), ``services`` the way
from a virtual address to an endpoint (kube-proxy), ``policies`` the NetworkPolicies, ``listeners``
what a container answers, ``environment`` the variables that name Services. All of them read objects
through a :class:`~kubepy.kubelet.network.view.ClusterView`.
"""

from kubepy.kubelet.network.connections import Network
from kubepy.kubelet.network.environment import service_environment
from kubepy.kubelet.network.listeners import Listener
from kubepy.kubelet.network.view import ClusterView

__all__ = ["ClusterView", "Listener", "Network", "service_environment"]
