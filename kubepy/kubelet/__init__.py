"""The simulated kubelet: plays the life of nodes and pods.

A node that reports nothing becomes Ready (``nodes``). The life of a pod is a table, ``stages``: the first row that
holds says what is due. What a pod looks like then is another table, ``outcomes``, which ``statuses`` turns into what
a kubelet reports. A pod that names its node, past the scheduler, must be admitted first (``admission``). Annotations
steer it all (``annotations``; docs/kubelet.md). ``controller`` alone writes, and at transitions only, so that a status
set by hand stays as it was set.
"""

from kubepy.kubelet.controller import Kubelet

__all__ = ["Kubelet"]
