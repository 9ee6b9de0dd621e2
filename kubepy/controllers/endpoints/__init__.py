"""Which pods are behind a Service: EndpointSlices, and Endpoints for those who still read them.

Both controllers are woken alike (``membership``) and decide with pure functions: ``slices`` says which EndpointSlices
to write, ``subsets`` what an Endpoints object holds. Services without a selector are left to whoever made them, but
what somebody writes into their Endpoints is mirrored to slices (``mirror``).
Upstream: ``pkg/controller/endpointslice``, ``k8s.io/endpointslice``, ``pkg/controller/endpoint``,
``pkg/controller/endpointslicemirroring``.
"""

from kubepy.controllers.endpoints.endpoints_controller import EndpointsController
from kubepy.controllers.endpoints.mirroring_controller import EndpointSliceMirroringController
from kubepy.controllers.endpoints.slice_controller import EndpointSliceController

__all__ = ["EndpointSliceController", "EndpointSliceMirroringController", "EndpointsController"]
