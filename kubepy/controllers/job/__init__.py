"""Jobs: pods that are run until enough of them have succeeded, or too many have failed.

``controller`` watches; ``sync`` is one look at one Job; ``ending`` decides whether and how it ends; ``pods`` makes and
picks pods; ``indexes``, ``policies`` and ``backoff`` answer its questions. Each pod bears a finalizer until it has been
counted, so that none is counted twice or missed. Upstream: ``pkg/controller/job``.
"""

from kubepy.controllers.job.controller import JobController

__all__ = ["JobController"]
