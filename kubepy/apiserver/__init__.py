"""The API server of one cluster, without the network.

A :class:`~kubepy.apiserver.cluster.Cluster` opens a state folder;
its :class:`~kubepy.apiserver.client.Client` is the only way to change it. A request (``request``)
is decoded, defaulted (``defaults``), admitted (``admission``), prepared by its kind's strategy
(``strategies``), validated (``validation``) and stored (``requests``). ``kinds`` says which
strategy, columns and plugins a kind has. Objects that come out are shared and read-only.
``threeway`` merges branches of a state folder. Upstream: ``k8s.io/apiserver``, ``pkg/registry``,
``pkg/apis``.
"""
