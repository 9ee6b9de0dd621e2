"""The tables of diagnoses: which are tried for which kind, in which order.

A module of causes has a table of its own, ``DIAGNOSES``, and where it has something to say of objects that are done,
``NOTES``. Here they are put together: for each kind first what keeps an object from going, then what refuses its pods,
what keeps them from a node, what breaks their containers, and last what only says how far it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubepy.insight.why import workloads
from kubepy.insight.why.scene import Diagnoses, Diagnosis

Table = Mapping[str, tuple[Diagnosis, ...]]
EVERY_KIND = "*"  # in a table: for every kind, before those of the kind itself


def merged(tables: Iterable[Table]) -> Diagnoses:
    """Put tables together in their order; what is for every kind comes first."""
    listed = list(tables)
    resources = {resource for table in listed for resource in table} - {EVERY_KIND}
    by_resource = {resource: tuple(diagnosis for table in listed for diagnosis in table.get(resource, ()))
                   for resource in sorted(resources)}
    return Diagnoses(by_resource, tuple(diagnosis for table in listed for diagnosis in table.get(EVERY_KIND, ())))


DIAGNOSES = merged((workloads.DIAGNOSES,))
NOTES = merged((workloads.NOTES,))
