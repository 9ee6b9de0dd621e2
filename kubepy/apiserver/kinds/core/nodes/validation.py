"""Nodes and their taints (``ValidateNode``, ``ValidateNodeUpdate`` upstream)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, duplicate, forbidden_field, invalid_value, required
from kubepy.api.meta import Object, nested_list, spec_of, status_of
from kubepy.apiserver.kinds.core.pods.validation.scheduling import TAINT_EFFECTS
from kubepy.apiserver.validation.fields import (
    Errors,
    go_view,
    label_value,
    validate_label_name,
    validate_optional_choice,
)
from kubepy.apiserver.validation.formats import have_families_of_their_own, validate_cidr
from kubepy.apiserver.validation.resources import validate_resource_quantity

POD_CIDR_KEPT = 'node updates may not change podCIDR except from "" to valid'


def validate_node(node: Object) -> list[FieldError]:
    errors: Errors = []
    spec = spec_of(node)
    status = status_of(node)
    # Upstream reports errors of taints under the path of metadata.
    validate_taints(nested_list(spec, "taints"), "metadata.taints", errors)
    _validate_amounts(status, errors)
    networks = nested_list(spec, "podCIDRs")
    for index, network in enumerate(networks):
        validate_cidr(network, f"spec.podCIDRs[{index}]", errors)
    if not have_families_of_their_own(networks):
        detail = "may specify no more than one CIDR for each IP family"
        errors.append(invalid_value("spec.podCIDRs", networks, detail))
    return errors


def _validate_amounts(status: Object, errors: Errors) -> None:
    for field in ("capacity", "allocatable"):
        amounts = status.get(field) or {}
        for name in sorted(amounts):
            validate_resource_quantity(name, amounts[name], f"status.{field}.{name}", errors)


def validate_taints(taints: list[Object] | tuple[()], path: str, errors: Errors) -> None:
    taint_keys: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at = f"{path}[{index}]"
        key = taint.get("key", "")
        effect = taint.get("effect", "")
        validate_label_name(key, f"{at}.key", errors)
        if complaints := label_value(taint.get("value", "")):
            errors.append(
                invalid_value(f"{at}.value", taint.get("value", ""), ";".join(complaints))
            )
        if not effect:
            errors.append(required(f"{at}.effect"))
        else:
            validate_optional_choice(effect, TAINT_EFFECTS, f"{at}.effect", errors)
        if (key, effect) in taint_keys:
            text = duplicate(at, go_view("core.Taint", taint)).text
            text += ": taints must be unique by key and effect pair"
            errors.append(FieldError("FieldValueDuplicate", at, text))
        taint_keys.add((key, effect))


def validate_node_update(node: Object, old: Object) -> list[FieldError]:
    """Validate an update of the node or of its status."""
    errors: Errors = []
    spec = spec_of(node)
    old_spec = spec_of(old)
    status = status_of(node)
    _validate_amounts(status, errors)

    addresses = nested_list(status, "addresses")
    for index, address in enumerate(addresses):
        if address in addresses[:index]:
            errors.append(
                duplicate(f"status.addresses[{index}]", go_view("core.NodeAddress", address))
            )

    networks = nested_list(spec, "podCIDRs")
    old_networks = nested_list(old_spec, "podCIDRs")
    if old_networks and networks != old_networks:
        errors.append(forbidden_field("spec.podCIDRs", POD_CIDR_KEPT))
    provider = old_spec.get("providerID", "")
    if provider and provider != spec.get("providerID", ""):
        detail = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden_field("spec.providerID", detail))
    validate_taints(nested_list(spec, "taints"), "metadata.taints", errors)
    if spec.get("externalID", "") != old_spec.get("externalID", ""):
        errors.append(forbidden_field("spec.externalID", "may not be updated"))
    return errors


def node_warnings(node: Object) -> list[str]:
    spec = spec_of(node)
    warnings = []
    if spec.get("configSource") is not None:
        warnings.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    return warnings
