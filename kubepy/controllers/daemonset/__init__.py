"""The DaemonSet controller: one pod on every node that should have one (``pkg/controller/daemon``).

``placement`` says where a pod belongs, ``pods`` what a node's pods are and what a new one looks like, ``manage`` which
to create and delete, ``rolling_update`` which to replace, ``status`` what to report: pure decisions. ``controller``
turns changes into work and writes.
"""

from kubepy.controllers.daemonset.controller import DaemonSetController

__all__ = ["DaemonSetController"]
