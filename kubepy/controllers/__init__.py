"""The controllers of a v1.36 kube-controller-manager.

A controller is a :class:`~kubepy.runtime.reconcile.Reconciler`: ``handlers`` turn changes into keys
of a work queue, ``sync`` converges the object of one
key. :class:`~kubepy.controlplane.manager.Manager` calls them, in a fixed order, many syncs in one
transaction; :mod:`kubepy.controlplane` says which controllers there are.

The controllers of workloads have one shape, so that a reader who knows one knows all::

    def sync(self, key):
        state = self.observe(key, ...)       # a frozen DaemonSetState, JobState …: objects, and now
        self.act(state, decide(state))       # decide: a pure function from the state to DaemonSetActions, JobActions …
        self._write_status(state, ...)       # new_status: a pure function as well

``observe`` reads the informers through typed listers, and claims: adopting and releasing are its
only writes, besides revisions of the history. ``decide`` is a module of its own in a package; it
reads no clock and writes nothing, so that tests call it with a state. ``act`` writes, in the order
that upstream writes in. Where a decision depends on the writes before it (Deployment, CronJob), it
is divided into steps: each is a pure function of the state that the writes so far have left. Where
upstream gathers errors, ``raise_all`` raises all of them; where it returns at once, the first.

========================================  ==============================================================================
``daemonset``                             one pod on every node; ``rolling_update`` replaces them, with surge or without
``statefulset``                           pods with ordinals, names and claims of their own, made and replaced in order
``deployment``                            one ReplicaSet a template, scaled up and down as the strategy allows
``replicaset``                            a number of equal pods; ReplicationControllers too
``job``, ``cronjob``                      pods that run until they succeed; Jobs that a schedule starts
``ttlafterfinished``                      deletes Jobs that ended some time ago
``podautoscaler``                         the size of scale targets, by the usage of their pods
``disruption``                            the status of PodDisruptionBudgets
``endpoint``, ``endpointslice``,          Endpoints and EndpointSlices of Services, slices that mirror Endpoints;
``endpointslicemirroring``                ``service_endpoints`` is their common part
``nodelifecycle``, ``tainteviction``      taints of nodes that are not ready, and the pods that do not tolerate them
``ttl``, ``podgc``                        an annotation of nodes; pods that are orphaned, or on nodes that are gone
``garbagecollector``, ``namespace``       dependents of deleted owners; contents of deleted namespaces
``persistentvolume``                      binding, provisioning and expanding volumes and claims
``ephemeralvolume``                       claims of pods' ephemeral volumes
``volumeprotection``                      finalizers of claims that pods use, and of bound volumes
``resourcequota``, ``clusterroles``       usage of quotas; rules of aggregated ClusterRoles
``customresources``                       objects of CustomResourceDefinitions that are deleted
========================================  ==============================================================================

Modules that workload controllers share:

========================================  ==============================================================================
``ownership``                             handlers that wake owners, and owners' selectors
``ref_manager``                           claiming: adopt orphans that match, release the others
``pod_control``                           creating and deleting pods with events, in a slow start
``expectations``                          writes that a controller has not observed yet
``pod_order``                             the order in which pods are given up
``conditions``                            lists of conditions in a status
========================================  ==============================================================================
"""  # noqa: E501
