"""``kubepy config``: contexts, and the commands that choose one.

A context is a state folder and a namespace. The folder that ``--state``, ``$KUBEPY_STATE`` or ``./state`` names is
home: its contexts count, kept in ``.kubepy/config`` in the form of a kubeconfig (:mod:`kubeconfig`), and the one that
is current says on which folder commands work, home or another. Upstream: ``client-go/tools/clientcmd``,
``kubectl/pkg/cmd/config``.
"""
