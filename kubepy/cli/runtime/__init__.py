"""What every verb is made of: its command line, the objects it is about, and how it prints them.

``command`` and ``flags`` declare a verb, ``factory`` is what it gets, ``resources`` and ``manifests`` find its objects,
``output`` and ``tables`` print. Upstream: ``k8s.io/cli-runtime``, ``kubectl/pkg/cmd/util``.
"""
