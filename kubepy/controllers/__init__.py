"""What a v1.36 kube-controller-manager runs, and the manager that runs it.

A controller is a :class:`~kubepy.runtime.reconcile.Reconciler`: handlers turn changes into keys, ``sync`` converges
one object. Each decides with pure functions that return what to create and delete, and writes through the Client.
The :class:`~kubepy.controlplane.manager.Manager` feeds them from the change log, in a fixed order, many syncs in one
transaction, and keeps where it got to, so that the next process goes on from there.
"""
