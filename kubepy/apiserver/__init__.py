"""The API server of one cluster, without the network.

A :class:`~kubepy.apiserver.cluster.Cluster` opens a state folder; its :class:`~kubepy.apiserver.client.Client` is the
only way to change it. A request is decoded, completed with defaults, prepared by its kind's strategy, validated,
admitted and stored. Objects that come out are shared and read-only.
Upstream: ``k8s.io/apiserver``, ``pkg/registry``, ``pkg/apis``.
"""
