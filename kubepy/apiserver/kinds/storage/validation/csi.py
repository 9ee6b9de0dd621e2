"""The objects of CSI drivers: CSIDrivers, CSINodes, CSIStorageCapacities and VolumeAttachments.

Upstream: ``pkg/apis/storage/validation/validation.go``.
"""

from __future__ import annotations

from kubepy.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.names import dns1123_subdomain
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.kinds.core.pods.validation.warnings import DEPRECATED_LABELS
from kubepy.apiserver.kinds.core.volumesources.validation import validate_csi_driver_name
from kubepy.apiserver.validation.fields import (
    IMMUTABLE,
    NEGATIVE,
    Errors,
    go_view,
    has_invalid_label_value,
    label_key,
    selector_view,
    semantically_equal,
    validate_as,
    validate_immutable,
    validate_label_selector,
    validate_nonnegative,
    validate_optional_choice,
)

GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
LIFECYCLE_MODES = ("Persistent", "Ephemeral")
TEN_MINUTES = 600
SHORTEST_PERIOD = 10
LONGEST_NODE_ID = 192
ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


# --- drivers --------------------------------------------------------------------------------------


def validate_driver(driver: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = driver["spec"]
    validate_optional_choice(
        spec.get("fsGroupPolicy"), GROUP_POLICIES, "spec.fsGroupPolicy", errors
    )

    audiences: set[str] = set()
    for index, request in enumerate(nested_list(spec, "tokenRequests")):
        audience = request.get("audience", "")
        seconds = request.get("expirationSeconds")
        if audience in audiences:
            errors.append(duplicate(f"spec.tokenRequests[{index}].audience", audience))
            continue
        audiences.add(audience)
        if seconds is not None:
            validate_token_lifetime(
                seconds, f"spec.tokenRequests[{index}].expirationSeconds", errors
            )

    errors.extend(
        not_supported("spec.volumeLifecycleModes", mode, LIFECYCLE_MODES)
        for mode in nested_list(spec, "volumeLifecycleModes")
        if mode not in LIFECYCLE_MODES
    )
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < SHORTEST_PERIOD:
        detail = f"must be greater than or equal to {SHORTEST_PERIOD} seconds"
        errors.append(invalid_value("spec.nodeAllocatableUpdatePeriodSeconds", period, detail))

    if old is not None:
        for field, shown in (
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ):
            validate_immutable(
                spec.get(field), old["spec"].get(field), f"spec.{shown}", errors
            )  # upstream's spelling

    return errors


def validate_token_lifetime(seconds: int, path: str, errors: Errors) -> None:
    """Validate the lifetime of a service account's token."""
    if seconds < TEN_MINUTES:
        errors.append(
            invalid_value(path, seconds, "may not specify a duration less than 10 minutes")
        )
    if seconds > 2**32:
        errors.append(
            invalid_value(path, seconds, "may not specify a duration larger than 2^32 seconds")
        )


# --- nodes ----------------------------------------------------------------------------------------


def validate_node(node: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a CSINode; an update may change of a driver's entry only the number of volumes that
    it attaches."""
    errors: Errors = []
    names: set[str] = set()
    drivers = nested_list(node["spec"], "drivers")
    for index, driver in enumerate(drivers):
        driver_path = f"spec.drivers[{index}]"
        name = driver.get("name", "")
        identifier = driver.get("nodeID", "")
        validate_csi_driver_name(name, f"{driver_path}.name", errors)
        if not identifier:
            errors.append(required(f"{driver_path}.nodeID"))
        if len(identifier.encode()) > LONGEST_NODE_ID:
            detail = f"must be {LONGEST_NODE_ID} characters or less"
            errors.append(invalid_value(f"{driver_path}.nodeID", identifier, detail))
        validate_nonnegative(
            (driver.get("allocatable") or {}).get("count"),
            f"{driver_path}.allocatable.count",
            errors,
        )
        if name in names:
            errors.append(duplicate(f"{driver_path}.name", name))
        names.add(name)
        keys = nested_list(driver, "topologyKeys")
        for position, key in enumerate(keys):
            if not key:
                errors.append(required(driver_path))
            if key in keys[:position]:
                errors.append(duplicate(driver_path, key))
            validate_as(label_key, key, driver_path, errors)

    for old_driver in nested_list(old or {}, "spec", "drivers"):
        for driver in drivers:
            compared, old_compared = (
                {**each, "allocatable": None} for each in (driver, old_driver)
            )
            if driver.get("name") == old_driver.get("name") and not semantically_equal(
                compared, old_compared
            ):
                errors.append(
                    invalid_value(
                        "spec.drivers", go_view("*storage.CSINodeDriver", compared), IMMUTABLE
                    )
                )

    return errors


# --- capacities -----------------------------------------------------------------------------------


def validate_capacity(capacity: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    tolerated = old is not None and has_invalid_label_value(old.get("nodeTopology"))
    topology = capacity.get("nodeTopology")
    name = capacity.get("storageClassName", "")
    validate_label_selector(topology, "nodeTopology", errors, allow_invalid_values=tolerated)
    validate_as(dns1123_subdomain, name, "storageClassName", errors)
    amount = capacity.get("capacity")
    if amount is not None and Quantity.parse(amount).nanos < 0:
        errors.append(invalid_value("capacity", amount, NEGATIVE))
    if old is None:
        return errors
    if not semantically_equal(topology, old.get("nodeTopology")):
        errors.append(invalid_value("nodeTopology", selector_view(topology), IMMUTABLE))
    validate_immutable(name, old.get("storageClassName", ""), "storageClassName", errors)
    return errors


def capacity_warnings(capacity: Object) -> list[str]:
    """Warn of deprecated labels of nodes (``GetWarningsForNodeSelector``)."""
    topology = capacity.get("nodeTopology") or {}
    warnings = []
    for index, expression in enumerate(nested_list(topology, "matchExpressions")):
        key = expression.get("key", "")
        if key in DEPRECATED_LABELS:
            warnings.append(
                f"nodeTopology.matchExpressions[{index}].key: {key} is {DEPRECATED_LABELS[key]}"
            )
    return warnings + [
        f"nodeTopology.matchLabels.{key}: {DEPRECATED_LABELS[key]}"
        for key in sorted(topology.get("matchLabels") or ())
        if key in DEPRECATED_LABELS
    ]


# --- attachments ----------------------------------------------------------------------------------


def validate_attachment(attachment: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a VolumeAttachment: a new one's attacher must be a driver's name, an update may not
    change the spec."""
    errors: Errors = []
    spec = attachment["spec"]
    attacher = spec.get("attacher", "")
    node = spec.get("nodeName", "")
    source = spec.get("source") or {}
    if not attacher:
        errors.append(required("spec.attacher"))

    name = source.get("persistentVolumeName")
    inline = source.get("inlineVolumeSpec")
    if name is None and inline is None:
        errors.append(required("spec.source", ONE_SOURCE))
    elif name is not None and inline is not None:
        errors.append(forbidden_field("spec.source", ONE_SOURCE))
    elif name == "":
        errors.append(
            required(
                "spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"
            )
        )

    validate_as(dns1123_subdomain, node, "spec.nodeName", errors)

    if old is None:
        validate_csi_driver_name(attacher, "spec.attacher", errors)
        if name is not None:
            validate_as(dns1123_subdomain, name, "spec.source.persistentVolumeName", errors)
    elif not semantically_equal(spec, old["spec"]):
        errors.append(
            invalid_value("spec", go_view("storage.VolumeAttachmentSpec", spec), IMMUTABLE)
        )

    return errors
