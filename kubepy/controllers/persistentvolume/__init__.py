"""The binding of claims and volumes, and the simulated storage behind them.

``claims`` and ``volumes`` decide for each of the two objects what is due, and ``binder`` writes
both sides of a binding. ``provisioner`` simulates the storage of classes that name it;
``expansion`` makes its volumes larger. Upstream: ``pkg/controller/volume/persistentvolume``,
``sig-storage-lib-external-provisioner``.
"""

from kubepy.controllers.persistentvolume.claims import ClaimController
from kubepy.controllers.persistentvolume.expansion import ExpandController, SimulatedResizer
from kubepy.controllers.persistentvolume.provisioner import SimulatedProvisioner
from kubepy.controllers.persistentvolume.volumes import VolumeController

__all__ = [
    "ClaimController",
    "ExpandController",
    "SimulatedProvisioner",
    "SimulatedResizer",
    "VolumeController",
]
