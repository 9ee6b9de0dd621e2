"""``kubepy auth``: who may do what.

Nothing here asks for permissions, so ``can-i`` says yes and ``whoami`` names the one user there is, the one that a
cluster made by kubeadm has; ``reconcile`` keeps roles and bindings as files describe them. Upstream:
``kubectl/pkg/cmd/auth``, ``component-helpers/auth/rbac``.
"""
