"""The scheduler: finds a node for each pod that has none, as kube-scheduler with its default
profile does.

``schedule_one`` runs the filter plugins (``framework``, ``plugins``): ``pre_filter`` once,
``filter`` for each node; ``scores`` chooses among the feasible nodes, and ``scheduler`` binds the
pod. When no node is feasible the pod's condition says why, in upstream's words; pods of lower
priority may be deleted for it (``preemption``); it waits in ``queue`` until a cluster event
(``cluster_events``) could help one of the plugins that rejected it. ``cache`` keeps nodes with the
sum of their pods from change to change.
"""

from kubepy.scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]
