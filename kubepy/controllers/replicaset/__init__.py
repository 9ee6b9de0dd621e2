"""ReplicaSets, and the ReplicationControllers of old: as many pods of a template as ``spec.replicas`` says.

``controller`` watches and acts; ``scale_down`` decides which pods go first; ``status`` counts.
Upstream: ``pkg/controller/replicaset`` and ``pkg/controller/replication``.
"""

from kubepy.controllers.replicaset.controller import ReplicaSetController, ReplicationManager

__all__ = ["ReplicaSetController", "ReplicationManager"]
