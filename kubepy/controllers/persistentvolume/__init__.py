"""Claims and volumes: two objects that must agree on each other, brought together in either order.

``controller`` decides what becomes of a claim and of a volume, ``binder`` writes both sides of a binding, ``reclaim``
does with a released volume as its policy says. ``provisioner`` plays the storage behind classes that name it.
Upstream: ``pkg/controller/volume/persistentvolume``, ``sig-storage-lib-external-provisioner``.
"""

from kubepy.controllers.persistentvolume.controller import PersistentVolumeController
from kubepy.controllers.persistentvolume.protection import PVProtectionController
from kubepy.controllers.persistentvolume.provisioner import SimulatedProvisioner

__all__ = ["PVProtectionController", "PersistentVolumeController", "SimulatedProvisioner"]
