"""Functions that read objects of the built-in kinds: pods, nodes, Deployments, Services, volumes
and claims.

They work on plain dicts and change none of them. ``pods``, ``nodes``, ``deployments``, ``services``
and ``volumes`` answer questions that controllers, scheduler and kubectl ask alike; ``quotas``
measures what objects use of a ResourceQuota, ``podsecurity`` checks pods against the Pod Security
Standards, ``autoscalers`` converts versions.
"""
