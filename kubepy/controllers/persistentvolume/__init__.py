"""Claims and volumes: two objects that must agree on each other, brought together in either order.

``claims`` and ``volumes`` decide what becomes of each, ``binder`` writes both sides of a binding, ``reclaim`` says what
the policy of a released volume asks for. ``provisioner`` plays the storage behind classes that name it; ``expansion``
makes its volumes larger.
Upstream: ``pkg/controller/volume/persistentvolume``, ``sig-storage-lib-external-provisioner``.
"""

from kubepy.controllers.persistentvolume.claims import ClaimController
from kubepy.controllers.persistentvolume.expansion import ExpandController, SimulatedResizer
from kubepy.controllers.persistentvolume.provisioner import SimulatedProvisioner
from kubepy.controllers.persistentvolume.volumes import VolumeController

__all__ = ["ClaimController", "ExpandController", "SimulatedProvisioner", "SimulatedResizer",
           "VolumeController"]
