"""CronJobs: Jobs that are made when a schedule says so.

``controller`` watches; ``sync`` is one look at one CronJob; ``schedule`` says what is due and what was missed;
``jobs`` makes Jobs and picks those that need not be kept. Upstream: ``pkg/controller/cronjob``.
"""

from kubepy.controllers.cronjob.controller import CronJobController

__all__ = ["CronJobController"]
