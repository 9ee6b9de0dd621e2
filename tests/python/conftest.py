"""Modules that are imported before pytester runs pytest inside this process: it forgets those that
are imported within, and YAML's C library would go on with classes of the forgotten ones."""

from kubepy import Cluster

Cluster.temporary().run(
    "create --dry-run=client -f -", stdin="kind: List\napiVersion: v1\nitems: []\n"
)
