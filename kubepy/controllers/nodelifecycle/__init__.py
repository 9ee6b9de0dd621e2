"""The node lifecycle controller: what becomes of a node by what its kubelet reports (``pkg/controller/nodelifecycle``).

``taints`` says which taints and labels a node should have, ``zones`` how much of each zone is not ready, which decides
whether pods are to leave such nodes at all, ``silence`` what is reported in place of a kubelet that never did: pure
decisions. ``controller`` turns changes into work and writes.

Upstream looks at all nodes every 5 s and taints them with NoExecute one in 10 s; here it is done at once.
"""

from kubepy.controllers.nodelifecycle.controller import NodeLifecycleController

__all__ = ["NodeLifecycleController"]
