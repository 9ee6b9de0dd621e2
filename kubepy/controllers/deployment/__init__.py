"""Deployments: one ReplicaSet a template, scaled up and down as the strategy allows.

``controller`` watches and acts; ``sizes`` and ``rolling`` decide how large each ReplicaSet is to be; ``revision`` keeps
their annotations; ``status`` counts and judges progress. Upstream: ``pkg/controller/deployment``.
"""

from kubepy.controllers.deployment.controller import DeploymentController

__all__ = ["DeploymentController"]
