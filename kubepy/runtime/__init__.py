"""The base of controllers: informers, work queue, events, revision history.

Upstream: ``k8s.io/client-go``, ``sigs.k8s.io/controller-runtime``.
"""
