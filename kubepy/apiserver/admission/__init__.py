"""Admission plugins that are on by default in an API server (``plugin/pkg/admission``,
``apiserver/pkg/admission``).

Each is a function of :class:`~kubepy.apiserver.server.Attributes`. The table of kinds says which
plugins look at which kind (``kubepy.apiserver.kinds``), and ``kubepy.apiserver.requests.admission``
runs them.
"""
