"""The sources of volumes, in pods and in PersistentVolumes."""
