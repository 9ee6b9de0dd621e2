"""What an object means: the API machinery of a cluster.

A :class:`~kubepy.cluster.cluster.Cluster` opens a state folder; its :class:`~kubepy.cluster.client.Client` is the only
way anything in it changes. A request goes: decode (``types``) → default → the kind's strategy → validate → storage.
Objects are plain dicts, shaped as the JSON of the Kubernetes API; whatever comes out of here is shared and read-only.
"""
