"""Defaults that the server sets in fields that an object leaves out
(``pkg/apis/*/v1/defaults.go``).

``pods`` has those of pods, containers and volumes, ``workloads`` those of what makes pods, ``core``
the others; kinds with few defaults have them in their strategy. Each function changes the object,
which has been decoded already: zero values of fields that Go leaves out are absent, and values of
the wrong type have been refused.
"""
