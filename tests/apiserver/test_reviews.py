"""Reviews: creating one answers a question and stores nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import CreateOptions

ABOUT = {"resourceAttributes": {"resource": "pods", "verb": "get"}}


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        ("selfsubjectaccessreviews", ABOUT),
        (
            "selfsubjectaccessreviews",
            {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
        ),
        ("subjectaccessreviews", {**ABOUT, "user": "ann"}),
        ("subjectaccessreviews", {**ABOUT, "groups": ["painters"]}),
        (
            "localsubjectaccessreviews",
            {
                "resourceAttributes": {**ABOUT["resourceAttributes"], "namespace": "default"},
                "user": "ann",
            },
        ),
    ],
)
def test_access_review_allows_all_and_stores_nothing(
    client: Client, resource: str, spec: dict[str, Any]
) -> None:
    before, key = client.revision(), f"{resource}.authorization.k8s.io"
    namespace = "default" if resource.startswith("local") else ""
    answer = client.create(
        key,
        {"spec": spec},
        namespace=namespace,
        options=CreateOptions(field_manager="kubectl-create"),
    )
    assert (answer["spec"], answer["status"], "uid" in answer["metadata"]) == (
        spec,
        {"allowed": True},
        False,
    )
    assert client.revision() == before


def test_user_is_told_who_asks_and_what_is_allowed(client: Client) -> None:
    who = client.create("selfsubjectreviews.authentication.k8s.io", {})
    assert who["status"]["userInfo"]["username"] == "kubernetes-admin"
    rules = client.create(
        "selfsubjectrulesreviews.authorization.k8s.io", {"spec": {"namespace": "default"}}
    )["status"]
    assert rules == {
        "incomplete": False,
        "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
        "resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    }


def test_token_review_of_any_token_is_unauthenticated(client: Client) -> None:
    answer = client.create("tokenreviews.authentication.k8s.io", {"spec": {"token": "x"}})
    assert answer["status"] == {"error": "invalid bearer token", "user": {}}


EITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


@pytest.mark.parametrize(
    ("resource", "spec", "why"),
    [
        ("selfsubjectaccessreviews", {}, f"spec.resourceAttributes: Invalid value: null: {EITHER}"),
        (
            "selfsubjectaccessreviews",
            {**ABOUT, "nonResourceAttributes": {"path": "/"}},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":""}: cannot be '
            "specified in combination with "
            "resourceAttributes",
        ),
        (
            "subjectaccessreviews",
            ABOUT,
            'spec.user: Invalid value: "": at least one of user or group must be specified',
        ),
    ],
)
def test_question_must_be_about_one_thing(
    client: Client, resource: str, spec: dict[str, Any], why: str
) -> None:
    with pytest.raises(Status) as caught:
        client.create(f"{resource}.authorization.k8s.io", {"spec": spec})
    assert (caught.value.reason, str(caught.value).partition(" is invalid: ")[2]) == (
        "Invalid",
        why,
    )
