"""The controllers of a v1.36 kube-controller-manager.

A controller is a :class:`~kubepy.runtime.reconcile.Reconciler`: handlers turn changes into keys, ``sync`` converges the
object of one key. It reads from the informers, decides with pure functions what to create, update and delete, and
writes through the Client. The :class:`~kubepy.controlplane.manager.Manager` feeds the controllers from the change log,
in the order of ``kubepy.controlplane``, many syncs in one transaction.

- workloads: ``daemonset``, ``statefulset``, ``deployment``, ``replicaset`` (and replication controllers), ``job``,
  ``cronjob``; shared by them are ``pod_control``, ``ref_manager``, ``expectations``, ``ownership``, ``conditions``
- their ends: ``garbagecollector``, ``namespace``, ``podgc``, ``ttlafterfinished``, ``customresources``
- nodes: ``nodelifecycle``, ``tainteviction``, ``ttl``
- volumes: ``persistentvolume``, ``ephemeralvolume``, ``volumeprotection``
- services: ``endpointslice``, ``endpoint``, ``endpointslicemirroring``; ``service_endpoints`` is shared by them
- policy: ``disruption``, ``resourcequota``, ``clusterroles``

Each names the package of ``pkg/controller`` that it follows. Only what differs from upstream is explained.
"""
