"""Requests that read and write objects: codes, Status bodies, options."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Answer, Api

MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
EVENTS, NEW_EVENTS = (
    "/api/v1/namespaces/default/events",
    "/apis/events.k8s.io/v1/namespaces/default/events",
)
APPLY = "application/apply-patch+yaml"


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"x": "1"}}


def refusal(answer: Answer) -> tuple[int, str, str]:
    status = answer.json()
    return answer.status, status.get("reason", ""), status["message"]


# --- creations ------------------------------------------------------------------------------------


def test_creation_answers_with_object_and_manager_of_user_agent(api: Api) -> None:
    answer = api.post(MAPS, config_map("a"), {"user-agent": "my agent/v1 (x)"})
    assert (answer.status, answer.json()["kind"]) == (201, "ConfigMap")
    [entry] = answer.json()["metadata"]["managedFields"]
    assert (entry["manager"], entry["fieldsV1"]) == ("my agent", {"f:data": {".": {}, "f:x": {}}})


def test_generated_name_and_dry_run(api: Api) -> None:
    made = api.post(f"{MAPS}?dryRun=All", {"metadata": {"generateName": "g-"}})
    assert (made.status, made.json()["metadata"]["name"][:2]) == (201, "g-")
    assert api.get(MAPS).json()["items"] == []


def test_existing_name_conflicts(api: Api) -> None:
    api.post(MAPS, config_map("a"))
    answer = api.post(MAPS, config_map("a"))
    assert refusal(answer) == (409, "AlreadyExists", 'configmaps "a" already exists')
    assert answer.json()["details"] == {"name": "a", "kind": "configmaps"}


@pytest.mark.parametrize(
    ("path", "obj", "refused"),
    [
        (
            MAPS,
            config_map("a", resourceVersion="5"),
            (500, "", "resourceVersion should not be set on objects to be created"),
        ),
        (
            MAPS,
            config_map("a", namespace="other"),
            (
                400,
                "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the "
                "request",
            ),
        ),
        (
            "/api/v1/namespaces/none/configmaps",
            config_map("a"),
            (404, "NotFound", 'namespaces "none" not found'),
        ),
    ],
)
def test_creation_that_is_refused(
    api: Api, path: str, obj: Any, refused: tuple[int, str, str]
) -> None:
    assert refusal(api.post(path, obj)) == refused


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("dryRun=some", 'dryRun: Unsupported value: ["some"]: supported values: "All"'),
        ("dryRun=", 'dryRun: Unsupported value: [""]: supported values: "All"'),
        (
            "fieldValidation=strict",
            'fieldValidation: Unsupported value: "strict": supported values: "", "Ignore", '
            '"Strict", "Warn"',
        ),
        (f"fieldManager={'x' * 129}", "fieldManager: Too long: may not be more than 128 bytes"),
        (
            "fieldManager=a%07b",
            'fieldManager: Invalid value: "a\\ab": invalid character U+0007 (at position 1)',
        ),
    ],
)
def test_wrong_options_are_invalid(api: Api, query: str, problem: str) -> None:
    answer = api.post(f"{MAPS}?{query}", config_map("a"))
    assert refusal(answer) == (
        422,
        "Invalid",
        f'CreateOptions.meta.k8s.io "" is invalid: {problem}',
    )
    details = answer.json()["details"]
    assert (details["group"], details["kind"], len(details["causes"])) == (
        "meta.k8s.io",
        "CreateOptions",
        1,
    )


# --- updates --------------------------------------------------------------------------------------


def test_update_creates_only_kinds_that_allow_it(api: Api) -> None:
    assert refusal(api.put(f"{MAPS}/a", config_map("a"))) == (
        404,
        "NotFound",
        'configmaps "a" not found',
    )
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    assert api.put(f"{roles}/r", {"metadata": {"name": "r"}}).status == 201
    assert api.put(f"{roles}/r", {"metadata": {"name": "r"}}).status == 200


@pytest.mark.parametrize(
    ("obj", "refused"),
    [
        (
            {"data": {}},
            (
                400,
                "BadRequest",
                "the name of the object (a based on URL) was undeterminable: name must be provided",
            ),
        ),
        (
            config_map("b"),
            (
                400,
                "BadRequest",
                "the name of the object (b) does not match the name on the URL (a)",
            ),
        ),
        (
            config_map("a", resourceVersion="1"),
            (
                409,
                "Conflict",
                'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
                "please apply "
                "your changes to the latest version and try again",
            ),
        ),
    ],
)
def test_update_that_is_refused(api: Api, obj: Any, refused: tuple[int, str, str]) -> None:
    api.post(MAPS, config_map("a"))
    assert refusal(api.put(f"{MAPS}/a", obj)) == refused


# --- patches --------------------------------------------------------------------------------------


def test_patches_of_every_type(api: Api) -> None:
    path = f"{MAPS}/a"
    api.post(MAPS, config_map("a"))
    assert api.patch(path, b'{"data": {"y": "2"}}').json()["data"] == {"x": "1", "y": "2"}
    strategic = api.patch(
        path, b'{"data": {"y": null}}', "application/strategic-merge-patch+json; charset=utf-8"
    )
    assert strategic.json()["data"] == {"x": "1"}
    added = api.patch(
        path, b'[{"op": "add", "path": "/data/z", "value": "3"}]', "application/json-patch+json"
    )
    assert added.json()["data"] == {"x": "1", "z": "3"}
    applied = api.patch(
        f"{path}?fieldManager=me", b"apiVersion: v1\nkind: ConfigMap\ndata: {q: '4'}\n", APPLY
    )
    assert (applied.status, applied.json()["data"]) == (200, {"x": "1", "z": "3", "q": "4"})


def test_apply_creates_conflicts_and_is_forced(api: Api) -> None:
    config = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '%d'}\n"
    assert api.patch(f"{MAPS}/a?fieldManager=one", config % 1, APPLY).status == 201
    answer = api.patch(f"{MAPS}/a?fieldManager=two", config % 2, APPLY)
    assert (answer.status, answer.json()["details"]["causes"]) == (
        409,
        [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.x"}],
    )
    assert api.patch(f"{MAPS}/a?fieldManager=two&force=true", config % 2, APPLY).json()["data"] == {
        "x": "2"
    }
    assert refusal(api.patch(f"{MAPS}/a", config % 2, APPLY)) == (
        422,
        "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
        "apply "
        "patch",
    )


def test_patch_cannot_make_another_kind(api: Api) -> None:
    api.post(MAPS, config_map("a"))
    answer = api.patch(f"{MAPS}/a", b'{"kind": "Pod"}')
    assert answer.status == 422
    assert answer.json()["message"].endswith(
        "converting (v1.Pod) to (core.ConfigMap): unknown conversion"
    )


# --- deletions ------------------------------------------------------------------------------------


def test_deletion_answers_with_status_or_object(api: Api) -> None:
    uid = api.post(MAPS, config_map("a")).json()["metadata"]["uid"]
    answer = api.delete(f"{MAPS}/a")
    assert (answer.status, answer.json()) == (
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": uid},
        },
    )
    api.post(ACCOUNTS, {"metadata": {"name": "a"}})
    assert api.delete(f"{ACCOUNTS}/a").json()["kind"] == "ServiceAccount"


def test_object_that_remains_is_accepted_where_cascading_was_asked_for(api: Api) -> None:
    api.post(MAPS, config_map("a", finalizers=["example.org/x"]))
    assert (
        api.delete(f"{MAPS}/a").status,
        api.delete(f"{MAPS}/a?orphanDependents=false").status,
    ) == (200, 202)
    left = api.get(f"{MAPS}/a").json()["metadata"]
    assert set(left["managedFields"][0]["fieldsV1"]["f:metadata"]) == {"f:finalizers"}


@pytest.mark.parametrize(
    ("query", "body", "refused"),
    [
        (
            "propagationPolicy=Orphan&orphanDependents=true",
            None,
            (
                422,
                "Invalid",
                'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: '
                '"Orphan": '
                "orphanDependents and deletionPropagation cannot be both set",
            ),
        ),
        (
            "gracePeriodSeconds=x",
            None,
            (400, "BadRequest", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ),
        (
            "",
            {"gracePeriodSeconds": "x"},
            (
                400,
                "BadRequest",
                "json: cannot unmarshal string into Go struct field "
                "DeleteOptions.gracePeriodSeconds of "
                "type int64",
            ),
        ),
        ("", {"preconditions": {"uid": "other"}}, (409, "Conflict", "")),
        ("", {"kind": "Pod", "apiVersion": "v1"}, (400, "BadRequest", "")),
    ],
)
def test_deletion_that_is_refused(
    api: Api, query: str, body: Any, refused: tuple[int, str, str]
) -> None:
    api.post(MAPS, config_map("a"))
    status, reason, message = refusal(api.delete(f"{MAPS}/a?{query}", body))
    assert (status, reason) == refused[:2]
    assert message == refused[2] or not refused[2]
    assert api.get(f"{MAPS}/a").status == 200


def test_collection_is_deleted_by_selector(api: Api) -> None:
    for name, team in (("a", "x"), ("b", "x"), ("c", "y")):
        api.post(MAPS, config_map(name, labels={"team": team}))
    answer = api.delete(f"{MAPS}?labelSelector=team%3Dx")
    assert (answer.status, answer.json()["kind"]) == (200, "ConfigMapList")
    assert [item["metadata"]["name"] for item in answer.json()["items"]] == ["a", "b"]
    assert [item["metadata"]["name"] for item in api.get(MAPS).json()["items"]] == ["c"]


def test_collection_is_deleted_in_chunks(api: Api) -> None:
    for name in ("a", "b", "c"):
        api.post(MAPS, config_map(name))
    listed = api.delete(f"{MAPS}?limit=2").json()
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    assert (bool(listed["metadata"]["continue"]), listed["metadata"]["remainingItemCount"]) == (
        True,
        1,
    )
    assert [item["metadata"]["name"] for item in api.get(MAPS).json()["items"]] == ["c"]
    assert refusal(api.delete(f"{MAPS}?continue=rubbish"))[:2] == (400, "BadRequest")


def test_object_of_a_revision_to_come_is_a_timeout(api: Api) -> None:
    api.post(MAPS, config_map("a"))
    assert (
        api.get(f"{MAPS}/a?resourceVersion=0").status,
        api.get(f"{MAPS}/a?resourceVersion=1").status,
    ) == (200, 200)
    assert refusal(api.get(f"{MAPS}/a?resourceVersion=99999999999999"))[:2] == (504, "Timeout")
    assert refusal(api.get(f"{MAPS}/a?resourceVersion=x"))[:2] == (400, "BadRequest")


def test_deleted_job_keeps_its_pods_with_a_warning(api: Api) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    api.post(jobs, {"metadata": {"name": "j"}, "spec": {"template": pod}})
    assert (
        "child pods are preserved by default"
        in api.delete(f"{jobs}/j?dryRun=All").headers["warning"]
    )
    assert "warning" not in api.delete(f"{jobs}/j?propagationPolicy=Background").headers


# --- events ---------------------------------------------------------------------------------------


def test_events_of_both_groups_are_the_same(api: Api) -> None:
    made = api.post(
        NEW_EVENTS,
        {
            "metadata": {"name": "e"},
            "eventTime": "2020-01-01T00:00:00.000000Z",
            "note": "n",
            "reason": "R",
            "regarding": {"kind": "Pod", "name": "y", "namespace": "default"},
            "action": "A",
            "type": "Warning",
            "reportingController": "example.org/c",
            "reportingInstance": "i",
        },
    )
    assert (made.status, made.json()["apiVersion"], made.json()["note"]) == (
        201,
        "events.k8s.io/v1",
        "n",
    )
    core = api.get(f"{EVENTS}/e").json()
    assert (
        core["apiVersion"],
        core["message"],
        core["involvedObject"]["name"],
        core["reportingComponent"],
    ) == ("v1", "n", "y", "example.org/c")
    [listed] = api.get(f"{NEW_EVENTS}?fieldSelector=regarding.name%3Dy").json()["items"]
    assert (listed["note"], "message" in listed) == ("n", False)
    patched = api.patch(
        f"{NEW_EVENTS}/e", b'{"note": "m"}', "application/strategic-merge-patch+json"
    )
    assert (patched.json()["note"], api.get(f"{EVENTS}/e").json()["message"]) == ("m", "m")
    assert api.delete(f"{EVENTS}/e").status == 200
    assert refusal(api.get(f"{NEW_EVENTS}/e"))[:2] == (404, "NotFound")


# --- mistakes of clients --------------------------------------------------------------------------

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(name: str, *containers: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": list(containers) or [{"name": "c", "image": "i"}]},
            },
        },
    }


def test_applied_list_item_without_its_key_has_the_default_of_the_key(api: Api) -> None:
    problem = (
        'Deployment.apps "d" is invalid: spec.template.spec.containers[0].name: Required value'
    )
    answer = api.patch(f"{DEPLOYMENTS}/d?fieldManager=m", deployment("d", {"image": "i"}), APPLY)
    assert refusal(answer) == (422, "Invalid", problem)
    api.post(DEPLOYMENTS, deployment("d"))
    answer = api.patch(f"{DEPLOYMENTS}/d?fieldManager=m", deployment("d", {"image": "i"}), APPLY)
    assert refusal(answer) == (422, "Invalid", problem.replace("[0]", "[1]"))
    twice = api.patch(
        f"{DEPLOYMENTS}/d?fieldManager=m", deployment("d", {"image": "i"}, {"image": "j"}), APPLY
    )
    assert twice.json()["message"].endswith(
        '.spec.template.spec.containers: duplicate entries for key [name=""]'
    )


def test_unknown_field_of_a_json_patch_is_an_error_of_strict_decoding(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("d"))
    patch, kind = (
        [{"op": "add", "path": "/spec/paused", "value": True, "foo": 1}],
        "application/json-patch+json",
    )
    status, reason, message = refusal(
        api.patch(f"{DEPLOYMENTS}/d?fieldValidation=Strict", patch, kind)
    )
    assert (status, reason) == (422, "Invalid")
    assert message.endswith(': strict decoding error: json patch unknown field "[0].foo"')
    assert "paused" not in api.get(f"{DEPLOYMENTS}/d").json()["spec"]
    warned = api.patch(f"{DEPLOYMENTS}/d?fieldValidation=Warn", patch, kind)
    assert (warned.status, warned.headers["warning"]) == (
        200,
        '299 - "json patch unknown field \\"[0].foo\\""',
    )


def test_json_patch_replaces_the_whole_object(api: Api) -> None:
    api.post(MAPS, config_map("a"))

    def replace(value: Any) -> Answer:
        return api.patch(
            f"{MAPS}/a",
            [{"op": "replace", "path": "", "value": value}],
            "application/json-patch+json",
        )

    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"y": "2"}}
    replaced = replace(whole)
    assert (replaced.status, replaced.json()["data"]) == (200, {"y": "2"})
    assert refusal(replace({})) == (
        400,
        "BadRequest",
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    )
    assert refusal(replace(3))[:2] == (422, "Invalid")
    assert "json: cannot unmarshal array into Go value of type struct" in refusal(replace([]))[2]


@pytest.mark.parametrize("entries", [[], [{}]])
def test_empty_managed_fields_reset_them(api: Api, entries: Any) -> None:
    for number, change in enumerate((api.put, api.patch)):
        name = f"m{number}"
        api.post(MAPS, config_map(name))
        changed = change(f"{MAPS}/{name}", config_map(name, managedFields=entries)).json()
        assert "managedFields" not in changed["metadata"]
        later = api.patch(f"{MAPS}/{name}", {"data": {"y": "2"}}).json()
        assert (later["data"], "managedFields" in later["metadata"]) == (
            {"x": "1", "y": "2"},
            False,
        )


def test_deleted_collection_is_answered_as_it_was_listed(api: Api) -> None:
    api.post(MAPS, config_map("a"))
    revision = api.get(MAPS).json()["metadata"]["resourceVersion"]
    for query in ("propagationPolicy=Foreground&dryRun=All", "propagationPolicy=Foreground"):
        listed = api.delete(f"{MAPS}?{query}").json()
        assert listed["metadata"]["resourceVersion"] == revision
        assert not {"deletionTimestamp", "finalizers"} & listed["items"][0]["metadata"].keys()
    assert api.get(f"{MAPS}/a").json()["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert refusal(api.delete(f"{MAPS}?resourceVersion=99999999999999"))[:2] == (504, "Timeout")


def test_list_of_one_name_has_no_second_chunk(api: Api) -> None:
    for name in ("a", "b", "c"):
        api.post(MAPS, config_map(name))
    listed = api.get(f"{MAPS}?limit=1&fieldSelector=metadata.name%3Da").json()
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    assert not listed["metadata"].get("continue")


@pytest.mark.parametrize(
    ("patch", "refused"),
    [
        (
            {"apiVersion": 0},
            (
                422,
                "Invalid",
                "cannot unmarshal number into Go struct field .apiVersion of type string",
            ),
        ),
        (
            {"kind": {}},
            (422, "Invalid", "cannot unmarshal object into Go struct field .kind of type string"),
        ),
        (
            {"apiVersion": None},
            (400, "BadRequest", "(a based on URL) was undeterminable: name must be provided"),
        ),
    ],
)
def test_patch_cannot_break_the_type_of_an_object(
    api: Api, patch: Any, refused: tuple[int, str, str]
) -> None:
    api.post(MAPS, config_map("a"))
    code, reason, message = refusal(api.patch(f"{MAPS}/a", patch))
    assert (code, reason) == refused[:2]
    assert message.endswith(refused[2])
    assert api.patch(f"{MAPS}/a", {"kind": None}).status == 200


def test_applied_metadata_may_be_null(api: Api) -> None:
    api.post(MAPS, config_map("a"))
    applied = api.patch(
        f"{MAPS}/a?fieldManager=m",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": None},
        APPLY,
    )
    assert (applied.status, applied.json()["metadata"]["name"]) == (200, "a")


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaim"
EXACTLY = {"deviceClassName": "gpu.example.org"}
RULE = "exactly one of `exactly` or `firstAvailable` is required"


@pytest.mark.parametrize(
    ("requests", "problems"),
    [
        ([{"name": "r"}], [("[0]", f"Required value: {RULE}")]),
        (
            [{"name": "r", "exactly": EXACTLY}, {"name": "r", "exactly": EXACTLY}],
            [("[1]", 'Duplicate value: "r"')],
        ),
        ([{"name": "r", "exactly": {}}], [("[0].exactly.deviceClassName", "Required value")]),
        (
            [{"name": "r", "exactly": EXACTLY, "firstAvailable": [{"name": "q", **EXACTLY}]}],
            [("[0]", f"Invalid value: null: {RULE}, but multiple fields are set")],
        ),
        (
            [
                {
                    "name": "r",
                    "firstAvailable": [
                        {"name": "q", **EXACTLY, "count": -1},
                        {"name": "q", **EXACTLY, "allocationMode": "Foo"},
                    ],
                }
            ],
            [
                ("[0].firstAvailable[0].count", "Invalid value: -1: must be greater than zero"),
                (
                    "[0].firstAvailable[1].allocationMode",
                    'Unsupported value: "Foo": supported values: "All", "ExactCount"',
                ),
                ("[0].firstAvailable[1]", 'Duplicate value: "q"'),
            ],
        ),
        (
            [{"name": "r", "exactly": {**EXACTLY, "allocationMode": "All", "count": 3}}],
            [
                (
                    "[0].exactly.count",
                    "Invalid value: 3: must not be specified when allocationMode is 'All'",
                )
            ],
        ),
        (
            [{"name": f"r{number}", "exactly": EXACTLY} for number in range(33)],
            [("", "Too many: 33: must have at most 32 items")],
        ),
        ([{"name": "r", "exactly": EXACTLY}], []),
    ],
)
def test_device_requests_are_validated(
    api: Api, requests: Any, problems: list[tuple[str, str]]
) -> None:
    devices = {"devices": {"requests": requests}}
    for kind, spec, path in (("s", devices, "spec"), ("templates", {"spec": devices}, "spec.spec")):
        answer = api.post(f"{CLAIMS}{kind}", {"metadata": {"name": "c"}, "spec": spec})
        assert answer.status == (422 if problems else 201)
        causes = [
            (cause["field"], cause["message"])
            for cause in answer.json().get("details", {}).get("causes", [])
        ]
        assert causes == [
            (f"{path}.devices.requests{place}", message) for place, message in problems
        ]


@pytest.mark.parametrize(("own", "fields"), [([], None), (["a.b/c"], {".": {}, 'v:"a.b/c"': {}})])
def test_finalizers_of_a_deletion_have_no_manager(api: Api, own: list[str], fields: Any) -> None:
    api.post(MAPS, config_map("a", finalizers=own))
    api.delete(f"{MAPS}/a?propagationPolicy=Foreground")
    metadata = api.get(f"{MAPS}/a").json()["metadata"]
    assert metadata["finalizers"] == [*own, "foregroundDeletion"]
    [entry] = metadata["managedFields"]
    assert entry["fieldsV1"].get("f:metadata", {}).get("f:finalizers") == fields


def test_error_of_an_applied_name_that_is_no_text(api: Api) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": {"a": "b"}}}
    message = api.patch(f"{MAPS}/a?fieldManager=m", config, APPLY).json()["message"]
    assert message.startswith(
        "failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata.name:"
    )


@pytest.mark.parametrize("first", ["Foreground", "Orphan"])
def test_later_policy_ends_a_deletion(api: Api, first: str) -> None:
    api.post(MAPS, config_map("a"))
    assert api.delete(f"{MAPS}/a?propagationPolicy={first}").json()["kind"] == "ConfigMap"
    ended = api.delete(f"{MAPS}/a?propagationPolicy=Background").json()
    assert (ended["kind"], ended["status"], api.get(f"{MAPS}/a").status) == (
        "Status",
        "Success",
        404,
    )
