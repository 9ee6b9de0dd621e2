"""Scheduling of pods: tolerations, affinity, topology spread
(``pkg/apis/core/validation/validation.go``)."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from kubepy.api.errors import duplicate, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.apiserver.kinds.core.pods.validation.options import REQUIRED, PodOptions
from kubepy.apiserver.validation.fields import (
    NOT_AN_OPERATOR,
    Errors,
    label_value,
    validate_as,
    validate_label_name,
    validate_label_selector,
    validate_label_values,
    validate_operator,
    validate_optional_choice,
    validate_positive,
)

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEIGHT_RANGE = "must be in the range 1-100"


# --- tolerations ----------------------------------------------------------------------------------


def validate_tolerations(tolerations: list[Object], path: str, errors: Errors) -> None:
    for index, toleration in enumerate(tolerations):
        if not _is_plain(
            toleration.get("key", ""),
            toleration.get("operator", ""),
            toleration.get("value", ""),
            toleration.get("effect", ""),
            "tolerationSeconds" in toleration,
        ):
            _validate_toleration(toleration, f"{path}[{index}]", errors)


@lru_cache(maxsize=1024)
def _is_plain(key: str, operator: str, value: str, effect: str, has_seconds: bool) -> bool:
    """Return whether a toleration is valid. Cached: all daemon pods have the same few."""
    errors: Errors = []
    toleration: Object = {"key": key, "operator": operator, "value": value, "effect": effect}
    if has_seconds:
        toleration["tolerationSeconds"] = 0
    _validate_toleration(toleration, "", errors)
    return not errors


def _validate_toleration(toleration: Object, path: str, errors: Errors) -> None:
    key = toleration.get("key", "")
    effect = toleration.get("effect", "")

    operator = toleration.get("operator", "")
    if key:
        validate_label_name(key, f"{path}.key", errors)
    elif operator != "Exists":
        detail = (
            'operator must be Exists when `key` is empty, which means "match all values and '
            'all keys"'
        )
        errors.append(invalid_value(f"{path}.operator", operator, detail))

    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid_value(f"{path}.effect", effect, detail))

    value = toleration.get("value", "")
    match operator:
        case "Equal" | "":
            if complaints := label_value(value):
                errors.append(invalid_value(f"{path}.operator", value, ";".join(complaints)))
        case "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid_value(f"{path}.operator", value, detail))
        case "Lt" | "Gt":  # behind a gate that is off in v1.36
            errors.append(
                not_supported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
            )
        case _:
            errors.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))

    if effect:
        validate_optional_choice(effect, TAINT_EFFECTS, f"{path}.effect", errors)


# --- node affinity --------------------------------------------------------------------------------


def validate_affinity(affinity: Object, options: PodOptions, path: str, errors: Errors) -> None:
    if node_affinity := affinity.get("nodeAffinity"):
        _validate_node_affinity(node_affinity, options, f"{path}.nodeAffinity", errors)
    for kind in ("podAffinity", "podAntiAffinity"):
        if pod_affinity := affinity.get(kind):
            _validate_pod_affinity(pod_affinity, options, f"{path}.{kind}", errors)


def _validate_node_affinity(
    affinity: Object, options: PodOptions, path: str, errors: Errors
) -> None:
    node_selector = affinity.get(REQUIRED)
    if node_selector is not None:
        validate_node_selector(
            node_selector,
            f"{path}.{REQUIRED}",
            errors,
            allow_invalid_values=options.allow_invalid_node_affinity_values,
        )
    for index, term in enumerate(affinity.get(PREFERRED) or ()):
        at = f"{path}.{PREFERRED}[{index}]"
        _validate_weight(term, f"{at}.weight", errors)
        validate_node_selector_term(
            term.get("preference") or {}, f"{at}.preference", errors, allow_invalid_values=True
        )


def _validate_pod_affinity(
    affinity: Object, options: PodOptions, path: str, errors: Errors
) -> None:
    for index, term in enumerate(affinity.get(REQUIRED) or ()):
        _validate_affinity_term(
            term,
            f"{path}.{REQUIRED}[{index}]",
            errors,
            allow_invalid_values=options.allow_invalid_selector_values,
        )

    for index, weighted in enumerate(affinity.get(PREFERRED) or ()):
        at = f"{path}.{PREFERRED}[{index}]"
        _validate_weight(weighted, f"{at}.weight", errors)
        _validate_affinity_term(
            weighted.get("podAffinityTerm") or {},
            f"{at}.podAffinityTerm",
            errors,
            allow_invalid_values=options.allow_invalid_selector_values,
        )


def _validate_weight(term: Object, path: str, errors: Errors) -> None:
    weight = term.get("weight", 0)
    if not 0 < weight <= 100:
        errors.append(invalid_value(path, weight, WEIGHT_RANGE))


def validate_node_selector(
    selector: Object, path: str, errors: Errors, *, allow_invalid_values: bool = False
) -> None:
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        errors.append(
            required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        )
        return
    for index, term in enumerate(terms):
        validate_node_selector_term(
            term,
            f"{path}.nodeSelectorTerms[{index}]",
            errors,
            allow_invalid_values=allow_invalid_values,
        )


def validate_node_selector_term(
    term: Object, path: str, errors: Errors, *, allow_invalid_values: bool
) -> None:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        if expression.get("operator") not in ("Gt", "Lt"):
            validate_operator(expression, at, errors)
        elif len(expression.get("values") or ()) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{at}.values", detail))
        validate_label_name(expression.get("key", ""), f"{at}.key", errors)
        if not allow_invalid_values:
            validate_label_values(expression.get("values"), f"{at}.values", errors)

    for index, expression in enumerate(term.get("matchFields") or ()):
        at = f"{path}.matchFields[{index}]"
        operator = expression.get("operator", "")
        key = expression.get("key", "")
        values = expression.get("values") or ()
        if operator not in ("In", "NotIn"):
            errors.append(invalid_value(f"{at}.operator", operator, NOT_AN_OPERATOR))
        elif len(values) != 1:
            detail = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            errors.append(required(f"{at}.values", detail))
        if key != "metadata.name":
            errors.append(invalid_value(f"{at}.key", key, "not a valid field selector key"))
            continue
        for position, value in enumerate(values):
            validate_as(dns1123_subdomain, value, f"{at}.values[{position}]", errors)


# --- pod affinity ---------------------------------------------------------------------------------


def _validate_affinity_term(
    term: Object, path: str, errors: Errors, *, allow_invalid_values: bool
) -> None:
    for selector in ("labelSelector", "namespaceSelector"):
        validate_label_selector(
            term.get(selector),
            f"{path}.{selector}",
            errors,
            allow_invalid_values=allow_invalid_values,
        )
    for namespace in term.get("namespaces") or ():
        validate_as(dns1123_label, namespace, f"{path}.namespace", errors)
    validate_match_label_keys(term, path, errors)
    topology_key = term.get("topologyKey", "")
    if not topology_key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    validate_label_name(topology_key, f"{path}.topologyKey", errors)


def validate_match_label_keys(term: Object, path: str, errors: Errors) -> None:
    """Validate ``matchLabelKeys`` and ``mismatchLabelKeys``
    (``ValidateMatchLabelKeysAndMismatchLabelKeys``)."""
    match = term.get("matchLabelKeys") or []
    mismatch = term.get("mismatchLabelKeys") or []
    if not match and not mismatch:
        return

    selector = term.get("labelSelector")
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.append(
                forbidden_field(
                    f"{path}.{field}", "must not be specified when labelSelector is not set"
                )
            )
            continue
        for position, name in enumerate(keys):
            validate_label_name(name, f"{path}.{field}[{position}]", errors)

    if selector is not None:
        # At creation the server adds the keys to the selector as expressions: only a second mention
        # is wrong.
        mentioned = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in match and key in mentioned:
                detail = "exists in both matchLabelKeys and labelSelector"
                errors.append(invalid_value(f"{path}[{match.index(key)}]", key, detail))
            mentioned.add(key)

    for index, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid_value(f"{path}.matchLabelKeys[{index}]", key, detail))


# --- topology spread ------------------------------------------------------------------------------


def _key_and_action(constraint: Object) -> tuple[str, str]:
    """Return what no two constraints of a pod may have in common."""
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def validate_topology_spread(
    constraints: list[Object], options: PodOptions, path: str, errors: Errors
) -> None:
    to_come = Counter(_key_and_action(constraint) for constraint in constraints)
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        validate_positive(constraint.get("maxSkew", 0), f"{at}.maxSkew", errors)
        if not constraint.get("topologyKey"):
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        key, action = _key_and_action(constraint)
        validate_optional_choice(
            action, ("DoNotSchedule", "ScheduleAnyway"), f"{at}.whenUnsatisfiable", errors
        )
        to_come[key, action] -= 1
        if to_come[key, action]:  # another one follows
            errors.append(
                duplicate(at + ".{topologyKey, whenUnsatisfiable}", f"{{{key}, {action}}}")
            )
        domains = constraint.get("minDomains")
        if domains is not None:
            validate_positive(domains, f"{at}.minDomains", errors)
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(invalid_value(f"{at}.minDomains", domains, detail))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            validate_optional_choice(
                constraint.get(field), ("Honor", "Ignore"), f"{at}.{field}", errors
            )
        validate_match_label_keys(constraint, at, errors)
        if not options.allow_invalid_spread_selector:
            validate_label_selector(constraint.get("labelSelector"), f"{at}.labelSelector", errors)
