"""The scheduler: finds a node for each pod that has none, as kube-scheduler with its default profile does.

A pod goes through the plugins' ``pre_filter`` (once) and ``filter`` (for each node); the feasible nodes are scored, the
best one is bound. Where none is feasible the pod says why, in upstream's words, pods of lower priority may have to make
room (``preemption``), and the pod waits (``queue``) for a change that could help one of the plugins that rejected it.
What runs where is kept by ``cache`` from change to change, never counted anew.
"""

from kubepy.scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]
