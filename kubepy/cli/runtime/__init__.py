"""The parts that commands are made of: their command line, the objects they are about, and how they
print them.

``command``, ``options`` and ``flags`` declare a command; a ``factory`` gives it the cluster and the
streams; ``builder``, ``infos`` and ``manifests`` find its objects; ``output`` and ``tables`` print
them; ``driver`` runs the controllers while it waits. Upstream: ``k8s.io/cli-runtime``,
``kubectl/pkg/cmd/util``.
"""

from kubepy.lazy import lazy_for_others

# click needs these for its own help, for translations and for parameters that are UUIDs: without
# this a sixth of the time of `get`.
with lazy_for_others("inspect", "gettext", "uuid"):
    import click as click
