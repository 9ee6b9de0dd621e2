"""LimitRanges: defaults for containers that name no amounts, and limits on the amounts of others.

Upstream: ``plugin/pkg/admission/limitranger``. Where it goes through a Go map, here names are in
order.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.meta import Object
from kubepy.api.objects.pods import Amounts, aggregate, amounts_of
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.server import Attributes

LIMIT_RANGES = "limitranges"
ANNOTATION = "kubernetes.io/limit-ranger"


def _limits(attributes: Attributes) -> list[list[Object]]:
    """Return the items of each LimitRange of the namespace."""
    return [
        (limit_range.get("spec") or {}).get("limits") or []
        for limit_range in attributes.transaction.list(LIMIT_RANGES, attributes.namespace)
    ]


# --- defaults -------------------------------------------------------------------------------------


def apply_limit_defaults(attributes: Attributes) -> None:
    """Give containers the default amounts of the namespace's LimitRanges, and note them in an
    annotation."""
    for items in _limits(attributes):
        defaults: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
        for item in items:
            if item.get("type") == "Container":
                defaults["requests"] |= item.get("defaultRequest") or {}
                defaults["limits"] |= item.get("default") or {}
        spec = attributes.obj["spec"]
        notes = [
            note
            for field, word in (("containers", "container"), ("initContainers", "init container"))
            for container in spec.get(field) or ()
            for note in _complete(container, defaults, word)
        ]
        if notes:
            annotations = attributes.obj["metadata"].get("annotations") or {}
            note = f"LimitRanger plugin set: {'; '.join(notes)}"
            attributes.obj["metadata"]["annotations"] = {**annotations, ANNOTATION: note}


def _complete(container: Object, defaults: dict[str, dict[str, str]], word: str) -> Iterator[str]:
    for field, label in (("requests", "request"), ("limits", "limit")):
        resources = container.get("resources") or {}
        amounts = resources.get(field) or {}
        added = {
            name: defaults[field][name] for name in sorted(defaults[field]) if name not in amounts
        }
        if added:
            container["resources"] = {**resources, field: {**amounts, **added}}
            yield f"{', '.join(added)} {label} for {word} {container.get('name', '')}"


# --- limits ---------------------------------------------------------------------------------------


def check_limits(attributes: Attributes) -> None:
    """Refuse amounts beyond a LimitRange. Raises Forbidden with all of its complaints."""
    if attributes.is_being_deleted:
        return
    check = _pod_complaints if attributes.resource.key == "pods" else _claim_complaints
    for items in _limits(attributes):
        complaints = list(
            dict.fromkeys(detail for item in items for detail in check(item, attributes.obj))
        )
        if complaints:
            raise attributes.forbidden(
                complaints[0] if len(complaints) == 1 else f"[{', '.join(complaints)}]"
            )


def _pod_complaints(item: Object, pod: Object) -> Iterator[str]:
    spec = pod["spec"]
    if item.get("type") == "Container":
        for container in (*spec["containers"], *(spec.get("initContainers") or ())):
            yield from _complaints(
                item, amounts_of(container, "requests"), amounts_of(container, "limits")
            )
    elif item.get("type") == "Pod":
        yield from _complaints(item, aggregate(spec, "requests"), aggregate(spec, "limits"))


def _complaints(item: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    kind = item["type"]
    for name, enforced in sorted(amounts_under(item, "min").items()):
        yield from _below(
            f"minimum {name} usage per {kind} is {enforced}",
            enforced,
            requests.get(name),
            limits.get(name),
        )

    for name, enforced in sorted(amounts_under(item, "max").items()):
        rule = f"maximum {name} usage per {kind} is {enforced}"
        request = requests.get(name)
        limit = limits.get(name)
        if limit is None:
            yield f"{rule}.  No limit is specified"
        elif limit > enforced:
            yield f"{rule}, but limit is {limit}"
        elif request is not None and request > enforced:
            yield f"{rule}, but request is {request}"

    for name, enforced in sorted(amounts_under(item, "maxLimitRequestRatio").items()):
        rule = f"{name} max limit to request ratio per {kind} is {enforced}"
        request = requests.get(name)
        limit = limits.get(name)
        if request is None or request.is_zero():
            yield f"{rule}, but no request is specified or request is 0"
        elif limit is None or limit.is_zero():
            yield f"{rule}, but no limit is specified or limit is 0"
        elif (ratio := limit.nanos / request.nanos) * 1000 > enforced.milli_value():
            yield f"{rule}, but provided ratio is {ratio:f}"


def amounts_under(item: Object, field: str) -> Amounts:
    return {name: Quantity.parse(amount) for name, amount in (item.get(field) or {}).items()}


def _below(
    rule: str, enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    if request is None:
        yield f"{rule}.  No request is specified"
    elif request < enforced:
        yield f"{rule}, but request is {request}"
    elif limit is not None and limit < enforced:
        yield f"{rule}, but limit is {limit}"


def _claim_complaints(item: Object, claim: Object) -> Iterator[str]:
    """Check the requests of a claim; its limits mean nothing."""
    if item.get("type") != "PersistentVolumeClaim":
        return
    requests = amounts_of(claim["spec"], "requests")
    for name, enforced in sorted(amounts_under(item, "min").items()):
        yield from _below(
            f"minimum {name} usage per PersistentVolumeClaim is {enforced}",
            enforced,
            requests.get(name),
            None,
        )

    for name, enforced in sorted(amounts_under(item, "max").items()):
        rule = f"maximum {name} usage per PersistentVolumeClaim is {enforced}"
        request = requests.get(name)
        if request is None:
            yield f"{rule}.  No request is specified"
        elif request > enforced:
            yield f"{rule}, but request is {request}"
