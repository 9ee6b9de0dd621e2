"""PersistentVolumeClaims (``pkg/registry/core/persistentvolumeclaim``)."""
