"""The parts that commands are made of: their command line, the objects they are about, and how they print them.

``command``, ``options`` and ``flags`` declare a command; a ``factory`` gives it the cluster and the streams;
``builder``, ``infos`` and ``manifests`` find its objects; ``output`` and ``tables`` print them; ``driver`` runs the
controllers while it waits. Upstream: ``k8s.io/cli-runtime``, ``kubectl/pkg/cmd/util``.
"""

from kubepy.lazy import lazy_for_others

with lazy_for_others("inspect"):  # which takes a tenth of the time of `get` to load, and click needs for its own help
    import click as click
