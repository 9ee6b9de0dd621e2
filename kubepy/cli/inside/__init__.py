"""Commands that look inside pods: ``exec``, ``attach``, ``cp``, ``port-forward``, ``debug``; and
``proxy``.

``pods`` finds the pod and the container that a command is about, ``streams`` connects a session
(:mod:`kubepy.kubelet.sessions`) with the streams of this process.
"""
