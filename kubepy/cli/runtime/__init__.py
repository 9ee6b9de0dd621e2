"""The parts that commands are made of: their command line, the objects they are about, and how they
print them.

``command``, ``options`` and ``flags`` declare a command; ``dispatch`` runs the one that a line
names, at once or through ``clicktree``, which makes click's commands of the declarations; a
``factory`` gives it the cluster and the streams; ``builder``, ``infos`` and ``manifests`` find its
objects; ``output`` and ``tables`` print them; ``driver`` runs the controllers while it waits.
Upstream: ``k8s.io/cli-runtime``, ``kubectl/pkg/cmd/util``.
"""
