"""``set``: changes of particular fields of objects with pod templates, a command a file.

Each command says how it changes one object (``change``); patching, printing and errors are the same for all of them.
Upstream: ``k8s.io/kubectl/pkg/cmd/set``.
"""
