"""``rollout``: the status, history and undoing of workloads' updates, a command a file.

What to say about an object (``viewers``) and which revisions it has (``revisions``) are functions apart from waiting
and printing. Upstream: ``k8s.io/kubectl/pkg/cmd/rollout`` and ``pkg/polymorphichelpers``.
"""
