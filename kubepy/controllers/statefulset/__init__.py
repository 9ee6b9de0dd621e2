"""StatefulSets: pods with ordinals, names and claims of their own, made and replaced in order.

``controller`` watches and claims; ``sync`` brings one set on by a step; ``members`` knows pods, ``claims`` their
volumes, ``status`` counts. Upstream: ``pkg/controller/statefulset``.
"""

from kubepy.controllers.statefulset.controller import StatefulSetController

__all__ = ["StatefulSetController"]
