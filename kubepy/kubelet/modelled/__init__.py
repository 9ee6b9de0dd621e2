"""Pods that do what their manifests say (``kubelet.containers: modelled``).

A :class:`~kubepy.kubelet.modelled.worker.PodWorker` lives the life of one pod: it starts its
containers in their order, runs their processes, probes them, restarts and stops them, in the
cluster's time. What it must know beside the pod's status is a
:class:`~kubepy.kubelet.modelled.records.PodRecord`, which is kept as JSON among the small values of
the cluster.
"""
