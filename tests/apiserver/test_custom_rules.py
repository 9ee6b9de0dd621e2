"""Custom resources through the Client: rules of their schemas, versions, names, selectable fields,
finalizers."""

from __future__ import annotations

from time import monotonic
from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.api.meta import clone
from kubepy.api.schema.customresources import deprecation_of
from kubepy.api.scheme import GroupVersionResource
from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import JSON_PATCH, MERGE_PATCH, CreateOptions, DeleteOptions, Patch

Object = dict[str, Any]
CRDS, BOATS = "customresourcedefinitions.apiextensions.k8s.io", "boats.example.org"
RULES = "x-kubernetes-validations"


def definition(spec: Object, *, rules: list[Object] | None = None, **version: Any) -> Object:
    """Return the definition of boats with these fields in their spec."""
    schema: Object = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}
    if rules:
        schema[RULES] = rules
    versions = [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
            **version,
        }
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": BOATS},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "versions": versions,
            "names": {"plural": "boats", "kind": "Boat"},
        },
    }


def boat(version: str = "v1", name: str = "ada", **spec: Any) -> Object:
    return {
        "apiVersion": f"example.org/{version}",
        "kind": "Boat",
        "metadata": {"name": name},
        "spec": spec,
    }


def create(client: Client, **spec: Any) -> Object:
    return client.create(BOATS, boat(**spec), namespace="default")


def refusal(client: Client, **spec: Any) -> str:
    with pytest.raises(Status) as error:
        create(client, **spec)
    return error.value.message.removeprefix('Boat.example.org "ada" is invalid: ')


def patch_refusal(client: Client, patch: Object) -> str:
    with pytest.raises(Status) as error:
        client.patch(BOATS, "ada", Patch(MERGE_PATCH, patch), namespace="default")
    return error.value.message.removeprefix('Boat.example.org "ada" is invalid: ')


SPEC: Object = {
    "type": "object",
    RULES: [
        {"rule": "self.min <= self.max", "message": "min must not be above max"},
        {
            "rule": "self.max < 100",
            "messageExpression": "'max is %d'.format([self.max])",
            "fieldPath": ".max",
            "reason": "FieldValueForbidden",
        },
    ],
    "properties": {
        "min": {"type": "integer"},
        "max": {"type": "integer"},
        "flag": {
            "type": "string",
            RULES: [{"rule": "self == oldSelf", "message": "flag is immutable"}],
        },
        "size": {
            "x-kubernetes-int-or-string": True,
            RULES: [{"rule": "type(self) == int ? self > 0 : self.endsWith('%')"}],
        },
        "until": {
            "type": "string",
            "format": "date-time",
            RULES: [{"rule": "self.getFullYear() > 2000"}],
        },
        "crew": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                RULES: [
                    {"rule": "self.age >= oldSelf.age", "message": "nobody gets younger"},
                    {"rule": "self.name.size() > 1"},
                ],
            },
        },
    },
}


def test_failing_rule_reports_its_message(client: Client) -> None:
    client.create(CRDS, definition(SPEC))
    assert refusal(client, min=5, max=3) == "spec: Invalid value: min must not be above max"
    assert refusal(client, min=5, max=300) == "spec.max: Forbidden: max is 300"
    assert refusal(client, min=1, max=2, size="5") == (
        'spec.size: Invalid value: "5": failed rule: type(self) == int ? self > 0 : '
        "self.endsWith('%')"
    )
    assert refusal(client, min=1, max=2, until="1999-01-01T00:00:00Z") == (
        'spec.until: Invalid value: "1999-01-01T00:00:00Z": failed rule: self.getFullYear() > 2000'
    )
    assert refusal(client, min=1, max=2, crew=[{"name": "x"}]) == (
        "spec.crew[0]: Invalid value: failed rule: self.name.size() > 1"
    )


def test_rule_about_missing_field_fails(client: Client) -> None:
    client.create(CRDS, definition(SPEC))
    assert refusal(client, min=1) == (
        '[spec: Invalid value: "object": no such key: max evaluating rule: min must not be above '
        "max, "
        'spec: Invalid value: "object": no such key: max evaluating rule: self.max < 100]'
    )


def test_rules_run_only_on_valid_objects(client: Client) -> None:
    client.create(CRDS, definition(SPEC))
    assert refusal(client, min="a", max=1) == (
        '[spec.min: Invalid value: "string": spec.min in body must be of type integer: "string", '
        "<nil>: Invalid value: "
        "null: some validation rules were not checked because the object was invalid; correct the "
        "existing errors to "
        "complete validation]"
    )


def test_transition_rule_compares_with_old_value(client: Client) -> None:
    client.create(CRDS, definition(SPEC))
    create(client, min=1, max=2, flag="nl", crew=[{"name": "ann", "age": 30}])
    assert (
        patch_refusal(client, {"spec": {"flag": "de"}})
        == 'spec.flag: Invalid value: "de": flag is immutable'
    )
    assert patch_refusal(
        client, {"spec": {"crew": [{"name": "bob", "age": 1}, {"name": "ann", "age": 29}]}}
    ) == ("spec.crew[1]: Invalid value: nobody gets younger")
    client.patch(BOATS, "ada", Patch(MERGE_PATCH, {"spec": {"flag": None}}), namespace="default")


def test_rule_with_optional_old_self_runs_on_create(client: Client) -> None:
    rule = {
        "rule": "oldSelf.hasValue() || self.min == 0",
        "optionalOldSelf": True,
        "message": "begins at 0",
    }
    client.create(CRDS, definition({**SPEC, RULES: [rule]}))
    assert refusal(client, min=1) == "spec: Invalid value: begins at 0"
    create(client, min=0)
    client.patch(BOATS, "ada", Patch(MERGE_PATCH, {"spec": {"min": 5}}), namespace="default")


def test_update_of_unchanged_value_passes_new_rule(client: Client) -> None:
    made = clone(client.create(CRDS, definition({**SPEC, RULES: []})))
    create(client, min=5, max=3)
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][RULES] = SPEC[
        RULES
    ]
    client.update(CRDS, made)
    client.patch(
        BOATS, "ada", Patch(MERGE_PATCH, {"metadata": {"labels": {"a": "b"}}}), namespace="default"
    )
    assert (
        patch_refusal(client, {"spec": {"min": 6}})
        == "spec: Invalid value: min must not be above max"
    )


def test_root_rule_sees_metadata_name(client: Client) -> None:
    client.create(
        CRDS,
        definition(SPEC, rules=[{"rule": "self.metadata.name == 'eve'", "message": "only eve"}]),
    )
    assert refusal(client, min=1, max=1) == "<nil>: Invalid value: only eve"


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (
            {"rule": "self.maxx > 1"},
            "compilation failed: ERROR: <input>:1:5: undefined field 'maxx'\n | self.maxx > 1\n | "
            "....^",
        ),
        ({"rule": "self.max + 1"}, "cel expression must evaluate to a bool"),
        ({"rule": "true", "messageExpression": "5"}, "messageExpression must evaluate to a string"),
    ],
)
def test_definition_with_uncompilable_rule_is_refused(
    client: Client, rule: Object, why: str
) -> None:
    with pytest.raises(Status) as error:
        client.create(CRDS, definition({**SPEC, RULES: [rule]}))
    assert error.value.message.endswith(why)
    field = "messageExpression" if "messageExpression" in rule else "rule"
    at = f"spec.validation.openAPIV3Schema.properties[spec].{RULES}[0].{field}: Invalid value: "
    assert at in error.value.message


def test_old_self_of_items_without_keys_is_refused(client: Client) -> None:
    items = {"type": "array", "items": {"type": "string", RULES: [{"rule": "self == oldSelf"}]}}
    with pytest.raises(Status) as error:
        client.create(CRDS, definition({"type": "object", "properties": {"tags": items}}))
    assert (
        "oldSelf cannot be used on the uncorrelatable portion of the schema within spec."
        in error.value.message
    )


# --- versions, names, fields ----------------------------------------------------------------------


def two_versions(**old: Any) -> Object:
    made = definition({"type": "object", "properties": {"length": {"type": "integer"}}})
    schema = {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "length": {"type": "integer", "default": 3},
                        "width": {"type": "integer"},
                    },
                }
            },
        }
    }
    made["spec"]["versions"].append(
        {"name": "v1beta1", "served": True, "storage": False, "schema": schema, **old}
    )
    return made


def test_object_of_older_version_is_stored_in_storage_version(client: Client) -> None:
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    client.create(CRDS, two_versions(deprecated=True))
    made = client.create(
        BOATS,
        boat("v1beta1", width=5),
        namespace="default",
        options=CreateOptions(field_validation="Strict"),
    )
    assert (made["apiVersion"], made["spec"]) == ("example.org/v1beta1", {"length": 3})
    stored = client.get(BOATS, "ada", namespace="default")
    assert (stored["apiVersion"], stored["spec"]) == ("example.org/v1", {"length": 3})
    assert warnings == ["example.org/v1beta1 Boat is deprecated; use example.org/v1 Boat"]


@pytest.mark.parametrize(
    ("versions", "warning"),
    [
        (
            [
                ("v1beta1", True, {}),
                ("v1beta2", True, {"deprecated": True}),
                ("v1alpha1", True, {}),
            ],
            "example.org/v1beta2 Boat is deprecated",
        ),
        (
            [("v1beta1", False, {}), ("v1alpha9", True, {"deprecated": True})],
            "example.org/v1alpha9 Boat is deprecated",
        ),
        (
            [("v2", True, {}), ("v10", True, {}), ("v1", True, {"deprecated": True})],
            "example.org/v1 Boat is deprecated; use example.org/v10 Boat",
        ),
        (
            [("blue", True, {}), ("red", True, {"deprecated": True})],
            "example.org/red Boat is deprecated; use example.org/blue Boat",
        ),
        (
            [("v2", True, {}), ("v1", True, {"deprecated": True, "deprecationWarning": "sinks"})],
            "sinks",
        ),
    ],
)
def test_deprecated_version_warning_names_best_better_version(
    versions: list[tuple[str, bool, Object]], warning: str
) -> None:
    spec = {
        "group": "example.org",
        "names": {"kind": "Boat"},
        "versions": [{"name": name, "served": served, **more} for name, served, more in versions],
    }
    deprecated = next(one for one in spec["versions"] if one.get("deprecated"))
    assert deprecation_of(spec, deprecated) == warning


def test_unknown_fields_are_checked_by_sent_version(client: Client) -> None:
    client.create(CRDS, two_versions())
    with pytest.raises(Status) as error:
        client.create(
            BOATS,
            boat("v1", width=5),
            namespace="default",
            options=CreateOptions(field_validation="Strict"),
        )
    assert error.value.message == (
        'Boat in version "v1" cannot be handled as a Boat: strict decoding error: unknown field '
        '"spec.width"'
    )


def test_deprecated_preferred_version_warns_on_every_request(client: Client) -> None:
    warnings: list[str] = []
    client.create(CRDS, definition(SPEC, deprecated=True, deprecationWarning="boats sink"))
    client = client.with_warn(warnings.append)
    client.list(BOATS)
    assert warnings == ["boats sink"]


def test_definition_with_taken_names_is_not_served(client: Client) -> None:
    client.create(CRDS, definition(SPEC))
    other = definition(SPEC)
    other["metadata"]["name"] = "ships.example.org"
    other["spec"]["names"] = {"plural": "ships", "kind": "Boat"}
    made = client.create(CRDS, other)
    assert [
        (one["type"], one["status"], one["message"]) for one in made["status"]["conditions"]
    ] == [
        ("NamesAccepted", "False", '"BoatList" is already in use'),
        ("Established", "False", "not all names are accepted"),
    ]
    with pytest.raises(Status) as error:
        client.list("ships.example.org")
    assert error.value.message == "the server could not find the requested resource"


def test_selectable_fields_are_those_of_definition(client: Client) -> None:
    client.create(CRDS, definition(SPEC, selectableFields=[{"jsonPath": ".spec.flag"}]))
    for name, flag in (("ada", "nl"), ("eve", "de")):
        client.create(BOATS, boat(name=name, min=1, max=2, flag=flag), namespace="default")
    found = client.list(BOATS, field_selector="spec.flag=de").items
    assert [one["metadata"]["name"] for one in found] == ["eve"]
    with pytest.raises(Status) as error:
        client.list(BOATS, field_selector="spec.min=1")
    assert error.value.message == "field label not supported: spec.min"


def test_terminating_definition_refuses_creates(cluster: LocalCluster) -> None:
    client = cluster.client
    client.create(CRDS, definition(SPEC))
    create(client, min=1, max=2)
    client.delete(CRDS, BOATS, options=DeleteOptions())
    with pytest.raises(Status) as error:
        client.create(BOATS, boat(name="eve", min=1, max=2), namespace="default")
    assert (error.value.code, error.value.message) == (
        403,
        'boats.example.org "eve" is forbidden: create not allowed while custom resource '
        "definition is terminating",
    )


def test_finalizer_without_path_warns(client: Client) -> None:
    client.create(CRDS, definition(SPEC))
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    held = boat(min=1, max=2)
    held["metadata"]["finalizers"] = ["example.org/fine", "example.org"]
    client.create(BOATS, held, namespace="default")
    assert warnings == [
        'metadata.finalizers: "example.org": prefer a domain-qualified finalizer name including a '
        "path "
        "(/) to avoid accidental conflicts with other finalizer writers"
    ]


def test_null_of_non_nullable_field_is_dropped(client: Client) -> None:
    client.create(
        CRDS,
        definition(
            {
                "type": "object",
                "properties": {
                    "length": {"type": "integer"},
                    "note": {"type": "string", "nullable": True},
                    "flag": {"type": "string", "default": "nl"},
                },
            }
        ),
    )
    assert create(client, length=None, note=None, flag=None)["spec"] == {"note": None, "flag": "nl"}
    replaced = client.patch(
        BOATS,
        "ada",
        Patch(JSON_PATCH, [{"op": "add", "path": "/spec/length", "value": None}]),
        namespace="default",
    )
    assert replaced["spec"] == {"note": None, "flag": "nl"}


# --- where rules point ----------------------------------------------------------------------------

MOORING: Object = {
    "type": "object",
    "properties": {
        "berth.no": {"type": "integer"},
        "if": {"type": "boolean"},
        "void": {"type": "string"},
        "lines": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}},
    },
}


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (".if", "spec.if"),
        ("['berth.no']", "spec.berth.no"),
        (".lines.stern", "spec.lines[stern]"),
        (".lines['it\\'s']", "spec.lines[it's]"),
    ],
)
def test_rule_with_field_path_reports_that_field(client: Client, path: str, named: str) -> None:
    client.create(
        CRDS,
        definition({**MOORING, RULES: [{"rule": "false", "message": "no", "fieldPath": path}]}),
    )
    assert refusal(client, void="x") == f"{named}: Invalid value: no"


@pytest.mark.parametrize(
    "path", [".", "..", "if", ".list[0]", ".berth.no", ".lines['a'", ".lines['\\q']", ".if.then"]
)
def test_rule_field_path_must_exist_in_schema(client: Client, path: str) -> None:
    with pytest.raises(Status) as error:
        client.create(CRDS, definition({**MOORING, RULES: [{"rule": "true", "fieldPath": path}]}))
    assert error.value.message.endswith("must be a valid path")
    assert f"properties[spec].{RULES}[0].fieldPath: Invalid value: " in error.value.message


def test_rule_sees_null_field_as_absent(client: Client) -> None:
    rules = [{"rule": "!has(self.note)"}]
    client.create(
        CRDS,
        definition(
            {
                "type": "object",
                RULES: rules,
                "properties": {"note": {"type": "string", "nullable": True}},
            }
        ),
    )
    assert create(client, note=None)["spec"] == {"note": None}


def test_objects_with_different_hidden_fields_are_unequal(client: Client) -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    pair = {
        "type": "array",
        "items": free,
        RULES: [{"rule": "self[0] != self[1]", "message": "twins"}],
    }
    client.create(CRDS, definition({"type": "object", "properties": {"pair": pair}}))
    create(client, name="bob", pair=[{"a": 1}, {"a": 2}])
    assert refusal(client, pair=[{"a": 1}, {"a": 1}]) == "spec.pair: Invalid value: twins"


def test_rule_sees_metadata_that_schema_describes_fully(client: Client) -> None:
    text = {"type": "string"}
    metadata = {
        "type": "object",
        "properties": {"name": text, "generateName": text, "namespace": text},
    }
    pod = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"apiVersion": text, "kind": text, "metadata": metadata},
        RULES: [{"rule": "self.metadata.namespace == 'default'", "message": "elsewhere"}],
    }
    client.create(CRDS, definition({"type": "object", "properties": {"pod": pod}}))
    said = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}}
    assert refusal(client, pod=said) == "spec.pod: Invalid value: elsewhere"


def test_field_named_like_reserved_word_is_readable(client: Client) -> None:
    rules = [
        {"rule": "!has(self.if) || self.if == self.__if__"},
        {"rule": "self.?void.orValue('x') == 'x'"},
        {"rule": "self.void != 'y'", "message": "not void"},
    ]
    client.create(CRDS, definition({**MOORING, RULES: rules}))
    assert create(client, **{"if": True, "void": "x"})["spec"] == {"if": True, "void": "x"}
    assert refusal(client, name="eve", void="y").endswith("Invalid value: not void]")


# --- cost -----------------------------------------------------------------------------------------

ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings "
    "are declared)"
)
AT = f"spec.validation.openAPIV3Schema.properties[spec].{RULES}"


def of_numbers(rule: str, **rest: Any) -> Object:
    numbers = {"type": "array", "items": {"type": "integer"}, **rest}
    return {"type": "object", "properties": {"numbers": numbers}, RULES: [{"rule": rule}]}


def test_definition_with_too_expensive_rule_is_refused(client: Client) -> None:
    cubic = "self.numbers.all(a, self.numbers.all(b, self.numbers.all(c, a + b + c > 0)))"
    with pytest.raises(Status) as error:
        client.create(CRDS, definition(of_numbers(cubic)))
    each = (
        f"{AT}[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than "
        f"100x {ADVICE}"
    )
    share = (
        f"{AT}[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit "
        f"for entire "
        "OpenAPIv3 schema"
    )
    whole = (
        "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost "
        "total for "
        f"entire OpenAPIv3 schema exceeds budget by factor of more than 100x {ADVICE}"
    )
    assert error.value.message == (
        f'CustomResourceDefinition.apiextensions.k8s.io "{BOATS}" is invalid: [{each}, {share}, '
        f"{whole}]"
    )
    client.create(CRDS, definition(of_numbers(cubic, maxItems=20)))


@pytest.mark.parametrize(
    ("most", "factor"),
    [
        (1, ""),
        (1820, ""),
        (1900, "1.084140"),
        (3000, "2.7"),
        (200000, "more than 100"),
    ],
)
def test_refusal_of_rule_tells_how_far_it_goes_over_its_budget(
    client: Client, most: int, factor: str
) -> None:
    spec = of_numbers("self.numbers.all(a, self.numbers.all(b, true))", maxItems=most)
    if not factor:
        client.create(CRDS, definition(spec))
        return
    with pytest.raises(Status, match=f"estimated rule cost exceeds budget by factor of {factor}x "):
        client.create(CRDS, definition(spec))


def test_cost_of_rule_counts_for_every_item_it_runs_on(client: Client) -> None:
    items: Object = {
        "type": "array",
        "items": {"type": "string", RULES: [{"rule": "self.contains('a')"}]},
    }
    with pytest.raises(
        Status, match="estimated rule cost exceeds budget by factor of more than 100x"
    ):
        client.create(CRDS, definition({"type": "object", "properties": {"names": items}}))
    items["items"]["maxLength"] = 100
    client.create(
        CRDS, definition({"type": "object", "properties": {"names": {**items, "maxItems": 1000}}})
    )


def test_cost_of_message_expression_is_limited_too(client: Client) -> None:
    message = "string(self.numbers.all(a, self.numbers.all(b, true)))"
    spec = {**of_numbers("true"), RULES: [{"rule": "true", "messageExpression": message}]}
    with pytest.raises(
        Status,
        match=r"\[0\].messageExpression: Forbidden: estimated messageExpression cost exceeds",
    ):
        client.create(CRDS, definition(spec))


def test_object_is_refused_if_rule_exceeds_limit(client: Client) -> None:
    rule = "self.lists.all(a, self.lists.all(b, a.all(x, b.all(y, x + y >= 0))))"
    lists = {
        "type": "array",
        "maxItems": 40,
        "items": {"type": "array", "maxItems": 15, "items": {"type": "integer"}},
    }
    spec: Object = {
        "type": "object",
        "properties": {"lists": lists, "label": {"type": "string", "maxLength": 5}},
        RULES: [{"rule": rule}, {"rule": "self.label == 'x'"}],
    }
    client.create(CRDS, definition(spec))
    start = monotonic()
    assert refusal(client, label="y", lists=[list(range(15))] * 40) == (
        "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no "
        "further validation "
        f"rules will be run due to call cost exceeds limit for rule: {rule}"
    )
    assert monotonic() - start < 10
    create(client, label="x", lists=[[1, 2]] * 3)


def test_rules_of_one_object_share_budget(client: Client) -> None:
    rule = (
        "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(n, "
        "self.text.matches('^(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o)*$'))"
    )
    spec: Object = {
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 90_000}},
        RULES: [{"rule": rule}] * 13,
    }
    client.create(CRDS, definition(spec))
    assert refusal(client, text="a" * 90_000) == (
        'spec: Invalid value: "object": validation failed due to running out of cost budget, no '
        "further validation "
        "rules will be run"
    )
    create(client, text="a" * 9_000)


def test_backtracking_pattern_is_decided_in_linear_time(client: Client) -> None:
    spec = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "pattern": "^(a+)+$"},
            "rule": {
                "type": "string",
                "maxLength": 100,
                RULES: [{"rule": "self.matches('^(a+)+$')", "message": "no match"}],
            },
        },
    }
    client.create(CRDS, definition(spec))
    text = "a" * 50 + "b"
    start = monotonic()
    assert "should match '^(a+)+$'" in refusal(client, pattern=text)
    assert refusal(client, rule=text) == f'spec.rule: Invalid value: "{text}": no match'
    assert monotonic() - start < 1
    create(client, pattern="a" * 50, rule="a" * 50)


def test_update_of_unchanged_schema_keeps_too_expensive_rule(
    cluster: LocalCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = of_numbers("self.numbers.all(a, self.numbers.all(b, true))", maxItems=3000)
    with monkeypatch.context() as patched:
        patched.setattr("kubepy.apiserver.kinds.apiextensions.validation.rules.RULE_LIMIT", 10**9)
        client.create(CRDS, definition(spec))
    client.patch(CRDS, BOATS, Patch(MERGE_PATCH, {"spec": {"names": {"shortNames": ["bt"]}}}))
    schema = {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {**spec, "description": "new"}},
        }
    }
    changed = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    with pytest.raises(Status, match=r"estimated rule cost exceeds budget by factor of 2\.7x"):
        client.patch(CRDS, BOATS, Patch(MERGE_PATCH, {"spec": {"versions": changed}}))


def test_wrong_status_is_named_as_its_own_schema_sees_it(client: Client) -> None:
    """A status is validated by the schema of the status alone, as upstream does: errors are at the
    fields of the object, and their texts name the fields of the status."""
    status = {
        "type": "object",
        "required": ["phase"],
        "properties": {
            "phase": {"type": "string"},
            "legs": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "port": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        },
    }
    crd = definition({"type": "object"}, subresources={"status": {}})
    version = crd["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = status
    client.create(CRDS, crd)
    create(client)

    def complaint(changed: Any) -> list[tuple[str, str]]:
        patch = Patch(MERGE_PATCH, {"status": changed})
        with pytest.raises(Status) as error:
            client.patch(BOATS, "ada", patch, namespace="default", subresource="status")
        return [(cause.field, cause.message) for cause in error.value.causes]

    assert complaint({"phase": 1, "legs": [2, 0]}) == [
        (
            "status.legs[1]",
            "Invalid value: 0: legs[1] in body should be greater than or equal to 1",
        ),
        (
            "status.phase",
            'Invalid value: "integer": phase in body must be of type string: "integer"',
        ),
    ]
    assert complaint({"legs": []}) == [("status.phase", "Required value")]
    assert complaint(5) == [
        ("status", 'Invalid value: "integer":  in body must be of type object: "integer"')
    ]


def test_new_default_shows_on_the_next_read_of_a_stored_object(client: Client) -> None:
    spec: Object = {"type": "object", "properties": {"crew": {"type": "integer"}}}
    client.create(CRDS, definition(spec))
    stored = create(client, crew=3)
    spec["properties"] = {"flag": {"type": "string", "default": "red"}}
    client.patch(CRDS, BOATS, Patch(MERGE_PATCH, {"spec": definition(spec)["spec"]}))

    boats = GroupVersionResource("example.org", "v1", "boats")
    read = client.get(boats, "ada", namespace="default")
    assert read["spec"] == {"flag": "red"}
    assert client.list(boats, namespace="default").items == [read]
    assert read["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]

    patch = Patch(MERGE_PATCH, {"metadata": {"labels": {"a": "b"}}})
    assert client.patch(BOATS, "ada", patch, namespace="default")["spec"] == {"flag": "red"}
