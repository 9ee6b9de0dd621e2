"""CustomResourceDefinitions (``apiextensions-apiserver/pkg/registry/customresourcedefinition``).

Upstream two controllers in the API server accept the names of a definition and establish it,
moments after it was stored. Here that is done as it is stored.
"""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, nested_list, nested_map, uid_of
from kubepy.apiserver.strategy import ListObjects, Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.apiserver.kinds.apiextensions.validation import definitions as validation
    from kubepy.apiserver.kinds.apiextensions.validation import schemas

# The names that no two definitions of a group share, and what a conflict of each is called.
_NAMED = {
    "plural": "Plural",
    "singular": "Singular",
    "shortNames": "ShortNames",
    "kind": "Kind",
    "listKind": "ListKind",
}


class CustomResourceDefinitionStrategy(Strategy):
    has_status = True
    has_generation = True
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        names = spec["names"]
        if not names.get("singular"):
            names["singular"] = names.get("kind", "").lower()
        if not names.get("listKind") and names.get("kind"):
            names["listKind"] = f"{names['kind']}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        service = nested_map(spec["conversion"], "webhook", "clientConfig").get("service")
        if service is not None:
            service.setdefault("port", 443)
        if not obj["status"].get("storedVersions"):
            obj["status"]["storedVersions"] = None
            _add_stored_version(obj)

    def begin_create(self, obj: Object, list_objects: ListObjects) -> None:
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": None,
        }
        _accept_names(obj, list_objects(self.resource.key))

    def begin_update(self, obj: Object, old: Object, list_objects: ListObjects) -> None:
        obj["status"] = dict(old["status"])
        _accept_names(obj, list_objects(self.resource.key))

    def prepare_for_create(self, obj: Object) -> None:
        _add_stored_version(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        _add_stored_version(obj)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj["spec"], old["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_definition(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_definition(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        validation.validate_names(
            obj["status"].get("acceptedNames") or {}, "status.acceptedNames", errors
        )
        return errors

    def warnings_on_create(self, obj: Object) -> list[str]:
        return [f"unrecognized format {quote(name)}" for name in schemas.unrecognized_formats(obj)]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        known = self.warnings_on_create(old)
        return [warning for warning in self.warnings_on_create(obj) if warning not in known]


def _add_stored_version(obj: Object) -> None:
    stored = nested_list(obj["status"], "storedVersions")
    version = next(
        (
            candidate["name"]
            for candidate in nested_list(obj["spec"], "versions")
            if candidate.get("storage")
        ),
        None,
    )
    if version is not None and version not in stored:
        obj["status"]["storedVersions"] = [*stored, version]


# --- names (``controller/status/naming_controller.go``, ``controller/establish``) -----------------


def _accept_names(obj: Object, definitions: list[Object]) -> None:
    """Accept the names that no other definition of the group has; with all of them it is
    established."""
    names = obj["spec"]["names"]
    status = obj["status"]
    accepted = dict(status.get("acceptedNames") or {})
    if status.get("conditions") and semantically_equal(names, accepted):
        return

    taken_kinds, taken_words = _taken_names(obj, definitions)
    accepted_condition = ("True", "NoConflicts", "no conflicts found")
    has_conflict = False
    for field, shown in _NAMED.items():
        taken = taken_kinds if field in ("kind", "listKind") else taken_words
        in_use = _in_use(names.get(field), accepted.get(field), taken)
        if in_use:
            accepted_condition = ("False", f"{shown}Conflict", in_use)
            has_conflict = True
        else:
            restore(accepted, names, field)

    restore(accepted, names, "categories")
    status["acceptedNames"] = accepted
    _set_condition(obj, "NamesAccepted", *accepted_condition)

    if not has_conflict:
        _set_condition(
            obj,
            "Established",
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        )
    elif all(condition["type"] != "Established" for condition in status["conditions"]):
        _set_condition(obj, "Established", "False", "NotAccepted", "not all names are accepted")


def _taken_names(obj: Object, definitions: list[Object]) -> tuple[set[str], set[str]]:
    """Return the kinds, and the other names, that other definitions of the group have accepted."""
    kinds: set[str] = set()
    words: set[str] = set()
    for definition in definitions:
        is_of_group = definition["spec"]["group"] == obj["spec"].get("group")
        if not is_of_group or uid_of(definition) == uid_of(obj):
            continue
        names = nested_map(definition, "status", "acceptedNames")
        kinds |= {names.get("kind", ""), names.get("listKind", "")}
        words |= {names.get("plural", ""), names.get("singular", "")}
        words.update(nested_list(names, "shortNames"))
    return kinds, words


def _in_use(
    names: str | list[str] | None, accepted: str | list[str] | None, taken: set[str]
) -> str:
    """Name those of the names that another definition has, in upstream's words; "" if there are
    none."""
    if not isinstance(names, list):
        if names and names != accepted and names in taken:
            return f"{quote(names)} is already in use"
        return ""
    in_use = [
        f"{quote(name)} is already in use"
        for name in names
        if name not in (accepted or ()) and name in taken
    ]
    if len(in_use) > 1:
        return f"[{', '.join(in_use)}]"
    return "".join(in_use)


def _set_condition(obj: Object, kind: str, status: str, reason: str, message: str) -> None:
    """Set a condition with the time of the object's creation: a strategy has no clock."""
    new_condition = {
        "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
        "message": message,
        "reason": reason,
        "status": status,
        "type": kind,
    }
    conditions = [dict(condition) for condition in nested_list(obj["status"], "conditions")]
    for index, known in enumerate(conditions):
        if known["type"] == kind:
            conditions[index] = {
                **known,
                **new_condition,
                "lastTransitionTime": known.get("lastTransitionTime"),
            }
            break
    else:
        conditions.append(new_condition)

    obj["status"]["conditions"] = conditions
