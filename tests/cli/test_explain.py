"""explain: fields, their types and values, in kubectl's layout."""

from __future__ import annotations

import pytest

from kubepy.api.schema import definitions
from kubepy.cli.explain import wrap
from tests.cli.conftest import Done, Kubepy

CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example}
spec:
  group: sea.example
  names: {plural: boats, singular: boat, kind: Boat}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: A boat.
        properties:
          spec:
            type: object
            required: [rig]
            properties:
              rig: {type: string, enum: [sloop, "", ketch, yawl, cutter], description: How it is rigged.}
              crew: {type: array, items: {type: object, properties: {name: {type: string}}}}
              flags: {type: object, additionalProperties: {type: string}}
"""  # noqa: E501


def test_explain_field_lists_enum_values(bare: Kubepy) -> None:
    assert bare("explain", "ds.spec.updateStrategy.type").out == (
        "GROUP:      apps\nKIND:       DaemonSet\nVERSION:    v1\n\n"
        "FIELD: type <string>\nENUM:\n    OnDelete\n    RollingUpdate\n\n"
        'DESCRIPTION:\n    Type of daemon set update. Can be "RollingUpdate" or "OnDelete". '
        "Default is\n"
        "    RollingUpdate.\n    \n\n"
    )
    assert bare("explain", "po.spec.hostname").out.startswith(
        "KIND:       Pod\nVERSION:    v1\n\nFIELD: hostname <string>\n\n\nDESCRIPTION:\n"
    )


def test_explain_recursive_type_is_listed_once(bare: Kubepy) -> None:
    out = bare("explain", "crd.spec.versions.schema", "--recursive").out
    assert "\n    not\t<JSONSchemaProps>\n    nullable\t<boolean>\n" in out


def test_explain_custom_resource_uses_its_definition(kubepy: Kubepy) -> None:
    assert kubepy("create", "-f", "-", stdin=CRD).status == 0
    assert kubepy("explain", "boats.spec").out.splitlines()[8:] == [
        "    <empty>",
        "FIELDS:",
        "  crew\t<[]Object>",
        "    <no description>",
        "",
        "  flags\t<map[string]string>",
        "    <no description>",
        "",
        "  rig\t<string> -required-",
        '  enum: sloop, "", ketch, yawl, ....',
        "    How it is rigged.",
        "",
        "",
    ]
    assert "metadata\t<ObjectMeta>" in kubepy("explain", "boat", "--recursive").out


def test_explain_without_package_of_descriptions_shows_fields_and_types(
    bare: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "DESCRIPTIONS_PACKAGE", "a_package_that_is_not_installed")
    done = bare("explain", "ds.spec.updateStrategy")
    assert done.err.startswith('descriptions need the extra "explain" of this installation: ')
    assert done._replace(err="") == Done(
        "GROUP:      apps\nKIND:       DaemonSet\nVERSION:    v1\n\n"
        "FIELD: updateStrategy <DaemonSetUpdateStrategy>\n\n\n"
        "DESCRIPTION:\n    <empty>\nFIELDS:\n"
        "  rollingUpdate\t<RollingUpdateDaemonSet>\n    <no description>\n\n"
        "  type\t<string>\n  enum: OnDelete, RollingUpdate\n    <no description>\n\n\n",
        "",
        0,
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["ds[0]"], "error: invalid jsonpath syntax, first node must be field node\n"),
        (["ds", "-o", "yaml"], "error: unrecognized format: yaml\n"),
        (
            ["pods", "--api-version=apps/v1"],
            "error: GVR (apps/v1, Resource=pods) not found in OpenAPI schema\n",
        ),
    ],
)
def test_explain_invalid_arguments_are_errors(bare: Kubepy, words: list[str], error: str) -> None:
    assert bare("explain", *words) == Done("", error, 1)


def test_explain_api_version_flag_selects_version(bare: Kubepy) -> None:
    assert bare("explain", "hpa.spec", "--api-version=autoscaling/v1").out.startswith(
        "GROUP:      autoscaling\nKIND:       HorizontalPodAutoscaler\nVERSION:    v1\n"
    )


@pytest.mark.parametrize(
    ("text", "wrapped"),
    [
        ("aa bb cc", "aa bb\ncc"),
        ("aaaaaaaa b", "aaaaaaaa\nb"),
        ("a\n\nb", "a\n\nb"),
        ("a  b", "a  b"),
        ("", ""),
    ],
)
def test_wrap_at_five_characters(text: str, wrapped: str) -> None:
    assert wrap(text, 5) == wrapped
