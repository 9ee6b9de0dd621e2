"""The way of a request: decode, prepare, admit, validate, and write in a session of storage.

One module a kind of request; ``server`` holds what all of them need of the cluster. Upstream:
``apiserver/pkg/endpoints/handlers``, ``apiserver/pkg/registry``.
"""
