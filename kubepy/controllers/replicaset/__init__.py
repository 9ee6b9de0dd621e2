"""ReplicaSets: as many pods of a template as ``spec.replicas`` says.

``controller`` watches and acts; ``scale_down`` decides which pods go first; ``status`` counts.
Upstream: ``pkg/controller/replicaset``.
"""

from kubepy.controllers.replicaset.controller import ReplicaSetController

__all__ = ["ReplicaSetController"]
