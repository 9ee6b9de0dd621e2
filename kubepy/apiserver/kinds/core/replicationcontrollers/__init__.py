"""ReplicationControllers (``pkg/registry/core/replicationcontroller``)."""
