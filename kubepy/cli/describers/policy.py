"""PodDisruptionBudget and PriorityClass."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.api.selectors import format_label_selector, format_labels
from kubepy.cli.describers.writer import Surroundings, Writer, events, go_value, heading


def pod_disruption_budget(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    heading(writer, obj)
    if "minAvailable" in spec:
        writer.field(0, "Min available", spec["minAvailable"])
    elif "maxUnavailable" in spec:
        writer.field(0, "Max unavailable", spec["maxUnavailable"])
    selector = spec.get("selector")
    writer.field(0, "Selector", "<unset>" if selector is None else format_label_selector(selector))
    writer.line(0, "Status:")
    for name, key in (("Allowed disruptions", "disruptionsAllowed"), ("Current", "currentHealthy"),
                      ("Desired", "desiredHealthy"), ("Total", "expectedPods")):
        writer.field(2, name, status.get(key, 0))
    events(writer, around)


def priority_class(writer: Writer, obj: Object, around: Surroundings) -> None:
    heading(writer, obj, namespaced=False)
    writer.field(0, "Value", obj.get("value", 0))
    writer.field(0, "GlobalDefault", go_value(bool(obj.get("globalDefault"))))
    writer.field(0, "PreemptionPolicy", obj.get("preemptionPolicy", ""))
    writer.field(0, "Description", obj.get("description", ""))
    writer.field(0, "Annotations", format_labels(obj["metadata"].get("annotations")))
    events(writer, around)
