"""A running cluster: the list of reconcilers, the manager that runs them, its checkpoints.

Upstream: ``cmd/kube-controller-manager``, the manager of ``sigs.k8s.io/controller-runtime``.
"""
