"""PersistentVolumes (``pkg/registry/core/persistentvolume``)."""
