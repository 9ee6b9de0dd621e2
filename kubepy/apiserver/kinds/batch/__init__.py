"""The kinds of the group batch."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import WARN_OF_TEMPLATE, ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.batch import printers, strategy

KINDS: dict[str, ServedKind] = {
    "cronjobs": ServedKind(
        lambda: strategy.CronJobStrategy,
        lambda: printers.print_cron_job,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "jobs": ServedKind(
        lambda: strategy.JobStrategy,
        lambda: printers.print_job,
        validating=(WARN_OF_TEMPLATE,),
    ),
}
