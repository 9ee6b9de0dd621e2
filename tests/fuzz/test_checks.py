"""Checks: reading them, and judging them write by write, with and without memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.api.cel.interpreter import evaluate
from kubepy.api.cel.values import CelError
from kubepy.api.meta import name_of, namespace_of
from kubepy.apiserver.request import MERGE_PATCH, CollectionOptions, ListOptions, Patch
from kubepy.fuzz.checks import Check, CheckSuite, Violation, builtin, parse_checks
from kubepy.fuzz.expressions import compile_check, resource_of
from kubepy.fuzz.objectlists import CheckError, hash_of
from kubepy.storage import FolderError, Key

Obj = dict[str, Any]


def always(expression: str, name: str = "check", **more: Any) -> Check:
    return Check(name, "always", expression, **more)


class Run:
    """A cluster in memory, without nodes, whose writes a suite is told of."""

    def __init__(self, *checks: Check, nodes: int = 0) -> None:
        self.cluster = Cluster.temporary(nodes=nodes)
        local = self.cluster._local
        assert local is not None
        local = local.fork(is_prediction=True)
        self.suite = CheckSuite(checks, local)
        self.local = local.observed(self.suite.note)
        self.client = self.local.client

    def create(self, obj: Obj) -> None:
        plural = {"CustomResourceDefinition": "customresourcedefinitions.apiextensions.k8s.io"}
        resource = plural.get(obj["kind"], f"{obj['kind'].lower()}s")
        if obj["kind"] == "Deployment":
            resource = "deployments.apps"
        if obj["kind"] == "Thing":
            resource = f"things.{obj['apiVersion'].partition('/')[0]}"
        self.client.create(resource, obj)

    def put(self, name: str, **data: str) -> None:
        """Create a ConfigMap, or change its data."""
        obj = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"},
            "data": data,
        }
        if any(name_of(found) == name for found in self.client.list("configmaps").items):
            self.client.update("configmaps", obj)
        else:
            self.client.create("configmaps", obj)

    def delete(self, name: str) -> None:
        self.client.delete("configmaps", name, namespace="default")

    def wait(self, seconds: float) -> None:
        self.local.clock.move_to(self.local.clock.now() + timedelta(seconds=seconds))

    @property
    def violation(self) -> Violation | None:
        return self.suite.violation

    def finish(self, *, settled: bool = True) -> Violation | None:
        self.suite.finish(settled=settled)
        return self.suite.violation


# --- reading


def test_file_of_checks_gives_each_with_its_times_in_seconds() -> None:
    checks = parse_checks(
        "checks.yaml",
        "- {name: two, always: 'pods.size() <= 2'}\n"
        "- {name: none, never: 'pods.size() > 9', after: 1m}\n"
        "- {name: right, eventually: 'pods.size() == 2', within: 1d}\n",
    )
    assert checks == (
        Check("two", "always", "pods.size() <= 2"),
        Check("none", "never", "pods.size() > 9", after=60.0),
        Check("right", "eventually", "pods.size() == 2", within=86400.0),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "c.yaml: must be a list of checks, at least one"),
        ("{}", "c.yaml: must be a list of checks, at least one"),
        ("- 1", "c.yaml: [0]: must be a map of name, always, never, eventually, after, within"),
        ("- {always: 'true'}", "c.yaml: [0].name: is required"),
        ("- {name: a}", "c.yaml: [0]: must have one of always, never, eventually"),
        (
            "- {name: a, always: 'true', never: 'true'}",
            "c.yaml: [0]: must have only one of always, never, eventually",
        ),
        (
            "- {name: a, alway: 'true'}",
            "c.yaml: [0].alway: unknown field: must be one of name, always, never, eventually, "
            "after, within",
        ),
        (
            "- {name: a, always: 'true', within: 1m}",
            "c.yaml: [0].within: goes with eventually only",
        ),
        (
            "- {name: a, eventually: 'true', after: 1m}",
            "c.yaml: [0].after: goes with always or never only",
        ),
        (
            "- {name: a, always: 'true', after: soon}",
            'c.yaml: [0].after: "soon" is not a duration such as 20m',
        ),
        ("- {name: a, always: 'true', after: 5}", '[0].after: "5" is not a duration such as 20m'),
        ("- {name: a, always: true}", "c.yaml: [0].always: must be a string"),
        (
            "- {name: a, always: 'pods.size()'}",
            "c.yaml: [0].always: must be an expression that is true or false",
        ),
        ("- {name: a, always: 'pods.size( <'}", "c.yaml: [0].always: does not compile: ERROR:"),
        (
            "- {name: a, always: 'pod.size() > 1'}",
            "c.yaml: [0].always: pod names no kind: did you mean pods? A custom kind is "
            "resources['pod.GROUP']",
        ),
        (
            "- {name: a, always: 'deploymnets.size() > 1'}",
            "c.yaml: [0].always: deploymnets names no kind: did you mean deployments?",
        ),
        (
            "- {name: a, always: 'thing.size() > 1'}",
            "c.yaml: [0].always: does not compile: ERROR: <input>:1:1: undeclared reference to "
            "'thing' (in container '')",
        ),
        (
            "- {name: a, always: 'resources.size() > 1'}",
            "c.yaml: [0].always: resources must be followed by a name in brackets: "
            "resources['pods']",
        ),
        (
            "- {name: a, always: \"resources['Pods'].size() > 1\"}",
            "c.yaml: [0].always: resources['Pods']: must be a plural and its group: "
            "resources['deployments.apps']",
        ),
        (
            "- {name: a, always: 'true'}\n- {name: a, never: 'true'}",
            'c.yaml: [1].name: "a" is there twice',
        ),
        ("- {name: a\n- b", "c.yaml: "),
        ("- a\n---\n- b\n", "c.yaml: must be one document, not 2"),
    ],
)
def test_bad_file_is_refused_with_file_and_field(text: str, message: str) -> None:
    with pytest.raises(FolderError) as caught:
        parse_checks("c.yaml", text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_built_in_check_is_refused_with_the_names() -> None:
    with pytest.raises(FolderError) as caught:
        builtin("bound")
    assert str(caught.value) == (
        '"bound": is no built-in check: must be one of bounds, settles, owners, '
        "no-conflict-storm, no-internal-error"
    )
    assert builtin("bounds") == Check("bounds", "builtin", "")


# --- always, never, after


def test_always_is_violated_by_the_write_after_which_it_is_false() -> None:
    run = Run(always("configmaps.filter(c, c.metadata.name.startsWith('w-')).size() <= 2"))
    run.wait(90)
    run.put("w-1")
    run.put("w-2")
    run.put("other")
    assert run.violation is None
    run.put("w-3")
    violation = run.violation
    assert violation is not None
    revision = run.client.revision()
    assert violation[:5] == (
        "check",
        90.0,
        "2026-01-01T00:01:30Z",
        Key("configmaps", "default", "w-3"),
        revision,
    )
    assert violation.message == (
        "configmaps.filter(c, c.metadata.name.startsWith('w-')).size() <= 2 must always hold, "
        "but did not after a write of configmaps default/w-3: it was not 3 <= 2"
    )
    run.delete("w-1")
    assert run.violation == violation
    assert run.finish() == violation


def test_never_is_violated_when_it_is_true_and_names_the_objects() -> None:
    check = Check("no", "never", "configmaps.exists(c, 'bad' in c.?data.orValue({}))")
    run = Run(check)
    run.put("a", good="1")
    assert run.violation is None
    run.put("a", bad="1")
    assert run.violation is not None
    assert run.violation.message.endswith(
        "must never hold, but did after a write of configmaps default/a: ConfigMap default/a"
    )


def test_deletion_is_a_write_that_may_violate() -> None:
    run = Run(always("configmaps.exists(c, c.metadata.name == 'keep')", after=1.0))
    run.put("keep")
    run.wait(2)
    run.put("keep", more="1")
    assert run.violation is None
    run.delete("keep")
    assert run.violation is not None
    assert run.violation.key == Key("configmaps", "default", "keep")


def test_deleted_collection_is_taken_in() -> None:
    run = Run(Check("few", "never", "configmaps.size() == 0", after=1.0))
    run.put("a")
    run.put("b")
    run.wait(2)
    options = CollectionOptions(ListOptions("", ""))
    run.client.delete_collection("configmaps", namespace="default", options=options)
    assert run.suite._lists.scope["configmaps"] == run.client.list("configmaps").items == []
    assert run.violation is not None
    assert run.violation.key == Key("configmaps", "default", "b")


BAD = "configmaps.all(c, c.metadata.name != 'bad')"


def test_after_leaves_out_what_was_before() -> None:
    run = Run(always(BAD, after=60.0))
    run.put("bad")
    run.wait(30)
    run.put("more")
    run.delete("bad")
    run.wait(40)
    run.put("more", x="1")
    assert run.violation is None
    run.put("bad")
    assert run.violation is not None
    assert run.violation.at == 70.0


@pytest.mark.parametrize("mended", [True, False])
def test_after_judges_the_state_that_lasts_at_that_moment(mended: bool) -> None:
    run = Run(always(BAD, after=60.0))
    run.wait(30)
    run.put("bad")
    revision = run.client.revision()
    run.wait(70)
    if mended:
        run.delete("bad")
    assert run.finish() == (
        "check",
        60.0,
        "2026-01-01T00:01:00Z",
        Key("configmaps", "default", "bad"),
        revision,
        f"{BAD} must always hold, but did not after a write of configmaps default/bad: ConfigMap "
        "default/bad",
    )


def test_after_judges_the_state_of_the_beginning_if_nothing_was_written() -> None:
    run = Run(always("configmaps.exists(c, c.metadata.name == 'x')", after=60.0))
    run.wait(61)
    run.put("x")
    assert run.violation is not None
    assert run.violation[1:5] == (60.0, "2026-01-01T00:01:00Z", None, 0)
    assert run.violation.message.endswith("must always hold, but did not from the beginning on")


def test_after_beyond_the_end_is_not_judged() -> None:
    run = Run(always("configmaps.all(c, c.metadata.name != 'bad')", after=60.0))
    run.put("bad")
    run.wait(59)
    assert run.finish() is None


# --- eventually


def eventually(within: float | None) -> Run:
    return Run(Check("e", "eventually", "configmaps.exists(c, c.metadata.name == 'x')", 0, within))


def test_eventually_must_hold_at_the_end() -> None:
    run = eventually(None)
    run.put("x")
    assert run.finish() is None
    run = eventually(None)
    run.put("x")
    run.delete("x")
    violation = run.finish()
    assert violation is not None
    assert violation.key is None
    assert violation.message.endswith("must hold at the end, but did not")


def test_eventually_within_must_have_come_to_hold_for_good() -> None:
    run = eventually(60.0)
    run.put("x")
    run.wait(30)
    run.delete("x")
    run.wait(30)
    run.put("x")
    run.wait(100)
    assert run.finish() is None

    run = eventually(60.0)
    run.put("x")
    run.wait(61)
    run.delete("x")
    run.put("x")
    run.wait(100)
    violation = run.finish()
    assert violation is not None
    assert violation.at == 161.0
    assert violation.message.endswith("must hold within 1m0s, but held only from 1m1s on")


def test_eventually_that_held_from_the_beginning_holds() -> None:
    run = Run(Check("e", "eventually", "configmaps.all(c, c.metadata.name != 'x')", 0, 1.0))
    run.wait(100)
    run.put("y")
    assert run.finish() is None


def test_eventually_that_cannot_be_evaluated_yet_does_not_hold_yet() -> None:
    expression = "configmaps.exists(c, c.metadata.name == 'x' && c.data.ready == 'yes')"
    run = Run(Check("e", "eventually", expression, 0, 60.0))
    run.put("x")
    run.wait(10)
    run.put("x", ready="yes")
    assert run.finish() is None
    run = Run(Check("e", "eventually", expression, 0, 60.0))
    run.put("x")
    with pytest.raises(CheckError):
        run.finish()


# --- which objects


def test_lists_are_of_all_namespaces_sorted_by_namespace_and_name() -> None:
    run = Run(always("configmaps.map(c, c.metadata.name).size() >= 0"))
    for namespace, name in (("default", "b"), ("kube-system", "a"), ("default", "a")):
        metadata = {"name": name, "namespace": namespace}
        run.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    objects = run.suite._lists.by_variable["configmaps"].objects
    names = [(namespace_of(obj), name_of(obj)) for obj in objects]
    assert names == sorted(names)
    assert {("default", "a"), ("default", "b"), ("kube-system", "a")} <= set(names)


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.org"},
    "spec": {
        "group": "example.org",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def thing(group: str = "example.org") -> Obj:
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Thing",
        "metadata": {"name": "one", "namespace": "default"},
    }


@pytest.mark.parametrize("variable", ["things", "resources['things.example.org']"])
def test_kind_that_is_defined_during_the_run_is_an_empty_list_before(variable: str) -> None:
    run = Run(always(f"{variable}.size() == 0"))
    run.put("a")
    run.create(DEFINITION)
    assert run.violation is None
    run.create(thing())
    assert run.violation is not None
    assert run.violation.key == Key("things.example.org", "default", "one")
    assert run.finish() is not None


def test_plural_of_two_custom_kinds_is_refused() -> None:
    run = Run(always("things.size() < 9"))
    other = {**DEFINITION, "metadata": {"name": "things.example.com"}}
    other["spec"] = {**other["spec"], "group": "example.com"}  # type: ignore[dict-item]
    run.create(DEFINITION)
    run.create(other)
    run.create(thing())
    with pytest.raises(CheckError, match=r"things is ambiguous: .*example\.org.*example\.com"):
        run.create(thing("example.com"))


def test_built_in_kind_goes_by_plural_with_and_without_group() -> None:
    for variable in ("deployments", "resources['deployments.apps']", "resources['deployments']"):
        run = Run(always(f"{variable}.size() == 0"))
        assert run.suite.resources == {"deployments.apps"}
        run.create(deployment())
        assert run.violation is not None


CONTAINERS = [{"name": "c", "image": "web:1"}]


def deployment() -> Obj:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


def pod(name: str, **labels: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": CONTAINERS},
    }


def test_bound_and_evicted_pods_are_taken_in() -> None:
    bound = Run(always("pods.all(p, !has(p.spec.nodeName))"), nodes=1)
    evicted = Run(always("pods.all(p, !has(p.metadata.deletionTimestamp))"), nodes=1)
    for run in (bound, evicted):
        run.create(pod("a"))
        assert run.violation is None
        node = name_of(run.client.list("nodes").items[0])
        run.client.bind("a", node, namespace="default")
    assert bound.violation is not None
    assert bound.violation.message.endswith(": Pod default/a")
    assert evicted.violation is None
    evicted.client.evict("a", namespace="default")
    assert evicted.violation is not None
    assert evicted.violation.key == Key("pods", "default", "a")


def test_scaled_workload_is_taken_in() -> None:
    run = Run(always("deployments.all(d, d.spec.replicas < 5)"))
    run.create(deployment())
    assert run.violation is None
    patch = Patch(MERGE_PATCH, {"spec": {"replicas": 5}})
    run.client.patch("deployments.apps", "d", patch, namespace="default", subresource="scale")
    assert run.violation is not None
    assert run.violation.message.endswith(": Deployment default/d")


def test_object_with_generated_name_is_named() -> None:
    run = Run(always("configmaps.all(c, !c.metadata.name.startsWith('gen-'))"))
    run.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"generateName": "gen-", "namespace": "default"},
        }
    )
    assert run.violation is not None
    assert run.violation.key is not None
    assert run.violation.key.name.startswith("gen-")


def test_events_are_read_though_their_writes_are_not_told_of() -> None:
    run = Run(always("events.size() == 0"), nodes=1)
    assert run.suite.resources is None
    run.cluster._local = run.local
    run.cluster.run(["run", "web", "--image=web:1"])
    run.cluster.settle()
    assert run.violation is not None


def test_resources_are_those_that_checks_read() -> None:
    assert Run(always("pods.size() < nodes.size()", after=5.0)).suite.resources == {"pods", "nodes"}
    assert Run(always("true")).suite.resources == frozenset()
    assert Run(always("resources['things.example.org'].size() < 1")).suite.resources == {
        "things.example.org"
    }
    assert Run(always("things.size() < 1")).suite.resources is None  # their group is not known
    assert Run(always("services.size() < 9")).suite.resources == {"services", "namespaces"}


def test_now_is_the_cluster_time() -> None:
    run = Run(always("now < timestamp('2026-01-01T00:01:00Z')"))
    run.put("a")
    assert run.violation is None
    run.wait(60)
    run.put("b")
    assert run.violation is not None


# --- errors


def test_error_in_a_body_names_check_and_object() -> None:
    run = Run(always("configmaps.all(c, c.data.size() > 0)", "has data"))
    with pytest.raises(CheckError) as caught:
        run.put("empty")
    assert str(caught.value) == (
        "check has data: cannot be evaluated of ConfigMap default/empty: no such key: data"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "configmaps.map(c, c.data.x == '1', c.data.y).size() >= 0",
        "configmaps.all(i, c, c.data.x == '1')",
        "secrets.all(s, configmaps.all(c, s.metadata.name != c.data.x))",
        "configmaps.filter(c, c.metadata.name == 'bad').all(c, c.data.x == '1')",
        "configmaps.filter(c, c.metadata.name == 'bad').exists(c, c.data.x == '1')",
        "configmaps.filter(c, c.metadata.name == 'bad').exists_one(c, c.data.x == '1')",
        "configmaps.filter(c, c.metadata.name == 'bad').filter(c, c.data.x == '1').size() >= 0",
    ],
)
def test_error_names_the_object_whatever_the_macro(expression: str) -> None:
    run = Run(always(expression))
    metadata = {"name": "s", "namespace": "default"}
    run.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    with pytest.raises(CheckError, match="of ConfigMap default/bad: no such key: "):
        run.put("bad", z="1")


def test_error_outside_of_a_body_names_what_was_written() -> None:
    run = Run(always("configmaps[100].data.x == '1'", "hundredth"))
    with pytest.raises(CheckError) as caught:
        run.put("a")
    assert str(caught.value).startswith(
        "check hundredth: cannot be evaluated after a write of configmaps default/a: index out of"
    )


def test_check_that_is_neither_true_nor_false_is_an_error() -> None:
    run = Run(always("dyn(configmaps.size())", "count"))
    with pytest.raises(CheckError, match="check count: is neither true nor false"):
        run.put("a")


# --- memory


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the objects whose bodies are computed from now on."""
    from kubepy.fuzz import memo

    names: list[str] = []
    compute = memo.RememberedBody._compute

    def count(self: Any, obj: Obj, inner: Obj, tracker: Any) -> Any:
        names.append(name_of(obj))
        return compute(self, obj, inner, tracker)

    monkeypatch.setattr(memo.RememberedBody, "_compute", count)
    return names


def test_write_computes_the_body_of_its_object_only(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(always("configmaps.all(c, c.metadata.name != 'bad' && c.?data.y.orValue('') != '1')"))
    for name in ("a", "b", "c"):
        run.put(name)
    names = counted(monkeypatch)
    run.put("b", x="1")
    assert names == ["b"]
    run.delete("b")
    run.put("b")
    assert names == ["b", "b"]
    run.put("bad")
    assert names == ["b", "b", "bad"]
    assert run.violation is not None


def test_object_that_is_deleted_and_made_again_is_judged_anew() -> None:
    run = Run(Check("no", "never", "configmaps.exists(c, c.?data.x.orValue('') == '1')"))
    run.put("a", x="0")
    run.delete("a")
    run.put("a", x="2")
    assert run.violation is None
    run.delete("a")
    run.put("a", x="1")
    assert run.violation is not None


def test_body_that_reads_another_list_is_computed_anew_when_that_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(always("configmaps.all(c, secrets.all(s, s.metadata.name != 'bad'))"))
    run.put("a")
    run.put("b")
    names = counted(monkeypatch)
    run.put("b", x="1")
    assert "a" not in names
    run.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad", "namespace": "default"}}
    )
    assert "a" in names
    assert run.violation is not None


def test_body_that_reads_its_own_list_or_an_outer_variable_is_not_remembered() -> None:
    run = Run(
        always(
            "configmaps.all(c, configmaps.filter(d, d.?data.x.orValue('') == c.metadata.name)"
            ".size() < 2)"
        )
    )
    run.put("a")
    run.put("b", x="a")
    assert run.violation is None
    run.put("c", x="a")
    assert run.violation is not None


EXPRESSIONS = (
    "configmaps.all(c, c.data.x != '3')",
    "configmaps.exists(c, c.data.x == '3')",
    "configmaps.exists_one(c, c.data.x == '3')",
    "configmaps.filter(c, has(c.data)).all(c, c.data.x != '3')",
    "configmaps.filter(c, has(c.data)).filter(c, has(c.data.x)).exists(c, c.data.x == '3')",
    "configmaps.filter(c, c.?data.x.orValue('') == '3').size() == 1",
    "configmaps.map(c, c.metadata.name).exists(n, n == 'n-1')",
    "configmaps.map(c, has(c.data), c.data.x).exists(x, x == '3')",
    "configmaps.all(c, secrets.exists(s, s.metadata.name == c.metadata.name))",
    "configmaps.filter(c, secrets.size() > 2).size() > 3",
    "configmaps.all(c, configmaps.exists_one(d, c.metadata.name == d.metadata.name))",
    "secrets.all(s, configmaps.filter(c, c.data.x == s.metadata.name).size() == 0)",
    "secrets.filter(s, configmaps.exists(c, c.?data.x == optional.of('3'))).size() == 0",
    "configmaps.all(configmaps, configmaps.metadata.name != 'n-1')",
    "configmaps.all(c, ['1', '3'].exists(x, c.?data.x.orValue('') == x))",
    "resources['configmaps'].filter(c, c.?data.x.hasValue()).sortBy(c, c.data.x)[0].data.x == '1'",
    "configmaps.all(i, c, i < 4)",
    "configmaps.exists(c, c.data.x == '3') || secrets.exists(s, s.metadata.name == 'n-1')",
    "configmaps.all(c, secrets.map(s, s.metadata.name).size() < 3 || c.metadata.name == 'n-1')",
    "things.exists(t, true)",
)


def outcomes(suite: CheckSuite) -> Iterator[tuple[str, object, object]]:
    """Yield each expression with its value by the memory and by the plain interpreter."""
    lists = suite._lists
    for judged in suite._judged:
        node = compile_check(judged.check.expression).node
        scope = {name: list(objects) for name, objects in lists.scope.items()}
        yield (
            judged.check.expression,
            outcome(judged.node, lists.scope),
            outcome(node, scope),
        )


def outcome(node: Any, scope: Obj) -> object:
    try:
        return evaluate(node, scope)
    except CelError as error:
        return f"error: {error}"


@pytest.mark.parametrize("seed", range(6))
def test_memory_and_plain_interpreter_agree_over_random_writes(seed: int) -> None:
    draw = random.Random(seed)
    run = Run(*(Check(text, "eventually", text) for text in EXPRESSIONS))
    for _ in range(60):
        write(run, draw)
        for name in run.suite._lists.by_variable:
            if name != "things":
                expected = run.client.list(resource_of(name)).items
                assert run.suite._lists.scope[name] == expected
        for text, remembered, plain in outcomes(run.suite):
            assert remembered == plain, text


def write(run: Run, draw: random.Random) -> None:
    """Make, change or delete a random ConfigMap or Secret."""
    resource, kind = draw.choice([("configmaps", "ConfigMap"), ("secrets", "Secret")])
    name = f"n-{draw.randrange(4)}"
    there = {name_of(obj) for obj in run.client.list(resource, namespace="default").items}
    obj: Obj = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
    }
    if kind == "ConfigMap" and draw.random() < 0.8:
        obj["data"] = {"x": draw.choice("123")}
    if name not in there:
        run.create(obj)
    elif draw.random() < 0.4:
        run.client.delete(resource, name, namespace="default")
    else:
        run.client.update(resource, obj)


# --- digest


def test_digest_is_the_same_for_other_names_and_orders() -> None:
    check = always("configmaps.filter(c, has(c.data)).size() < 9")
    first, second = Run(check), Run(check)
    first.put("a", x="1")
    first.put("b")
    second.put("z")
    second.put("y", x="2")
    second.put("extra")
    assert first.suite.digest() != second.suite.digest()
    second.delete("extra")
    assert first.suite.digest() == second.suite.digest()
    second.put("z", x="1")
    assert first.suite.digest() != second.suite.digest()


def test_digest_tells_one_from_true_and_is_the_same_in_every_process() -> None:
    assert hash_of((1,)) != hash_of((True,)) != hash_of((1.0,))
    assert hash_of(("pods", True, (1, None, "Running"))) == 4660974241932590075


def test_digest_follows_another_list_that_a_body_reads() -> None:
    run = Run(always("configmaps.filter(c, secrets.size() > 0).size() >= 0"))
    run.put("a")
    before = run.suite._lists.by_variable["configmaps"].digest()
    metadata = {"name": "s", "namespace": "default"}
    run.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    assert run.suite._lists.by_variable["configmaps"].digest() != before


def test_digest_leaves_the_name_of_an_object_out_of_values() -> None:
    check = always("configmaps.map(c, c.metadata.name + '!').size() >= 0")
    first, second = Run(check), Run(check)
    first.put("a")
    second.put("b")
    assert first.suite.digest() == second.suite.digest()


# --- beside the real controllers


@pytest.mark.parametrize(
    "lines",
    [
        ["set image deploy/web web=web:2", "scale deploy/web --replicas=2", "delete deploy/web"],
        ["create namespace other", "create configmap a -n other", "delete namespace other"],
        ["create job work --image=work:1", "drain node-1 --ignore-daemonsets --force"],
    ],
)
def test_lists_follow_all_that_commands_and_controllers_write(lines: list[str]) -> None:
    cluster = Cluster.temporary(nodes=3, settings={"kubelet": {"readyAfter": "5s"}})
    cluster.run(["create", "deployment", "web", "--image=web:1", "--replicas=4"])
    assert cluster._local is not None
    fork = cluster._local.fork(is_prediction=True)
    names = (
        "pods",
        "replicasets",
        "deployments",
        "configmaps",
        "services",
        "serviceaccounts",
        "endpointslices",
        "jobs",
        "nodes",
        "namespaces",
        "events",
    )
    suite = CheckSuite([always(f"{name}.all(o, has(o.metadata))", name) for name in names], fork)
    writes = 0

    def compare(key: Key, obj: Obj | None, user: Obj) -> None:
        nonlocal writes
        writes += 1
        for name, objects in suite._lists.scope.items():
            if name != "events" or key.resource != "events":
                listed = fork.client.list(suite._lists.by_variable[name].resource).items
                assert [obj["metadata"] for obj in objects] == [obj["metadata"] for obj in listed]

    run = Cluster(fork.observed(suite.note, compare))
    for line in lines:
        assert run.run(line.split()).status == 0
        run.settle()
    assert writes > 20
    suite.finish(settled=True)
    assert suite.violation is None
