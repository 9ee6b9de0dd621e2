"""Sequences of remedies, where one does not suffice; the kinds of remedies; how much an answer may
cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.insight import RemedyCommand
from kubepy.insight.why import STUCK, Why, budget, verdict
from kubepy.insight.why.marks import kind_of
from kubepy.insight.why.question import DIAGNOSES
from kubepy.insight.why.scene import Scene
from kubepy.storage import Key

from .incidents import INCIDENTS, begun, cron_job, deployment, job, webhook


def steps(why: Why) -> list[str]:
    assert why.sequence is not None
    return [" ".join(step.command) for step in why.sequence.steps]


# --- sequences ------------------------------------------------------------------------------------


def test_sequence_names_each_cause_in_its_order() -> None:
    why = begun(INCIDENTS["quota and taint"]).why("deploy/web")
    assert why.state == STUCK
    assert not any(remedy.proven for remedy in why.remedies)
    assert why.sequence is not None
    assert [
        (step.command[:2], step.cause, step.kind, step.after) for step in why.sequence.steps
    ] == [
        (("patch", "resourcequota/team"), "quota-exceeded", "real", 0.0),
        (("taint", "nodes"), "taint", "real", 0.0),
    ]


def test_sequence_leaves_out_what_it_does_not_need() -> None:
    """The rollout is paused, but as soon as its image is the one that runs there is nothing to
    resume for."""
    why = begun(INCIDENTS["two bad revisions"]).why("deploy/web")
    assert steps(why) == ["set image deployment/web web=web:1"]


def test_sequence_of_one_is_the_first_real_remedy() -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    cluster.run("create deployment web --image=web:1", check=True)
    cluster.run("rollout pause deployment/web", check=True)
    cluster.run("set image deployment/web web=web:2", check=True)
    assert steps(cluster.why("deploy/web")) == ["rollout resume deployment/web"]


def test_sequence_prefers_real_remedies_to_shorter_destructive_ones() -> None:
    cluster = begun(INCIDENTS["limit range and quota"])
    why = cluster.why("deploy/web")
    assert why.sequence is not None
    assert {step.kind for step in why.sequence.steps} == {"real"}


def test_text_shows_sequence_in_80_columns_and_its_commands_once() -> None:
    output = begun(INCIDENTS["quota and taint"]).run("why deployment/web").stdout
    assert output.count("kubepy patch resourcequota/team") == 1
    assert "\n  One after the other:\n  kubepy patch" in output
    assert "\n      a quota of the namespace is used up (quota-exceeded)\n  kubepy taint" in output
    assert "\n  proven together: done 160ms later\n" in output
    assert all(len(line) <= 80 for line in output.splitlines() if not line.startswith("  kubepy"))


# --- kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (("scale", "deployment/web", "--replicas=1"), "real"),
        (("rollout", "undo", "deployment/web"), "real"),
        (("delete", "pod", "POD"), "real"),
        (("delete", "pod", "POD", "--grace-period=0", "--force"), "destructive"),
        (("delete", "pod", "bare"), "destructive"),
        (("delete", "pod/bare", "pod/POD"), "destructive"),
        (("delete", "resourcequota/team", "-n", "shop"), "destructive"),
        (("delete", "node", "node-1"), "destructive"),
        (
            ("taint", "node", "node-1", "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"),
            "destructive",
        ),
        (("taint", "node", "node-1", "dedicated:NoSchedule-"), "real"),
        (("annotate", "node", "node-1", "kubepy.dev/down-until-"), "simulated"),
        (("label", "nodes", "node-1", "disk=ssd"), "real"),
        (("label", "nodes", "node-1", "topology.kubernetes.io/zone=b", "--overwrite"), "simulated"),
        (
            (
                "patch",
                "persistentvolume/disk",
                "--type=merge",
                "-p",
                '{"spec":{"capacity":{"storage":"5Gi"}}}',
            ),
            "simulated",
        ),
        (
            (
                "patch",
                "persistentvolume/disk",
                "--type=merge",
                "-p",
                '{"spec":{"storageClassName":"a"}}',
            ),
            "real",
        ),
        (
            (
                "patch",
                "persistentvolume/disk",
                "--type=json",
                "-p",
                '[{"op":"remove","path":"/spec/claimRef"}]',
            ),
            "destructive",
        ),
        (
            (
                "patch",
                "configmap/keep",
                "--type=merge",
                "-p",
                '{"metadata":{"finalizers":null}}',
                "-n",
                "shop",
            ),
            "destructive",
        ),
        (
            ("patch", "validatingwebhookconfiguration/guard", "--type=json", "-p", "[]"),
            "destructive",
        ),
    ],
)
def test_kind_of_remedy(command: tuple[str, ...], kind: str) -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    cluster.run("create deployment web --image=web:1", check=True)
    cluster.run("run bare --image=web:1", check=True)
    cluster.settle()
    pod = next(pod for pod in cluster.client.list("pods") if pod["metadata"]["name"] != "bare")
    with cluster._open() as local:
        words = tuple(word.replace("POD", pod["metadata"]["name"]) for word in command)
        assert kind_of(Scene(local, DIAGNOSES), words) == kind


@pytest.mark.parametrize(
    ("annotations", "change", "kind"),
    [
        ('kubepy.dev/exit-code: "1"', "nodeSelector", "real"),
        ('kubepy.dev/exit-code: "1"', "annotations", "simulated"),
    ],
)
def test_kind_of_job_made_anew_is_that_of_what_is_changed(
    annotations: str, change: str, kind: str
) -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    manifest = job(annotations=annotations, pod="nodeSelector: {disk: ssd}")
    cluster.run("apply -f -", stdin=manifest, check=True)
    changed = json.loads(manifest)
    template = changed["spec"]["template"]
    del (template["metadata"] if change == "annotations" else template["spec"])[change]
    words = RemedyCommand(("replace", "--force", "-f", "-"), json.dumps(changed))
    with cluster._open() as local:
        assert kind_of(Scene(local, DIAGNOSES), words) == kind


def test_runtime_class_that_is_made_is_simulated_and_comes_after_another_template() -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    cluster.run("apply -f -", stdin=deployment(pod="runtimeClassName: gvisor"), check=True)
    remedies = cluster.why("deployment/web").remedies
    assert [(remedy.command[0], remedy.kind, remedy.proven) for remedy in remedies] == [
        ("patch", "real", True),
        ("create", "simulated", True),
    ]


def test_remedies_real_ones_come_first_and_destructive_ones_last() -> None:
    cluster = Cluster.temporary(nodes=3, seed=7)
    for manifest in (webhook(), deployment()):
        cluster.run("apply -f -", stdin=manifest, check=True)
    answer = json.loads(cluster.run("why deployment/web -o json").stdout)
    assert {remedy["kind"] for remedy in answer["remedies"]} == {"destructive"}
    assert answer["sequence"]["steps"][0]["kind"] == "destructive"
    dead = begun(INCIDENTS["pod with finalizer on dead node"]).why("pod/web")
    assert [remedy.kind for remedy in dead.remedies] == [
        "simulated",
        "destructive",
        "destructive",
        "destructive",
    ]


# --- costs ----------------------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch) -> list[budget.Budget]:
    """Return the budgets of the answers from now on."""
    budgets: list[budget.Budget] = []

    class Counted(budget.Budget):
        def __init__(self, most: float, whole: Any = None, **options: Any) -> None:
            super().__init__(most, whole, **options)
            if whole is None:
                budgets.append(self)

    monkeypatch.setattr("kubepy.insight.why.question.Budget", Counted)
    return budgets


@pytest.mark.parametrize(
    "manifest",
    [
        cron_job(annotations="kubepy.dev/outcome: image-pull-backoff"),
        cron_job("concurrencyPolicy: Forbid", annotations='kubepy.dev/exit-code: "1"'),
    ],
)
def test_answer_about_work_without_end_is_bounded(
    manifest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets = counted(monkeypatch)
    cluster = Cluster.temporary(nodes=3, seed=7)
    cluster.run("apply -f -", stdin=manifest.replace("*/10", "*"), check=True)
    cluster.advance("10m")
    assert cluster.why("cronjob/report").state == STUCK
    [whole] = budgets
    assert whole.left > -budget.MOST_OF_RUN


def test_answer_about_cron_job_that_starts_each_minute_leaves_a_third_of_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its forks never come to rest: each run costs what it may cost."""
    budgets = counted(monkeypatch)
    cluster = Cluster.temporary(nodes=3, seed=7)
    cluster.run("taint nodes --all dedicated=db:NoSchedule", check=True)
    cluster.run("apply -f -", stdin=cron_job().replace("*/10", "*"), check=True)
    cluster.advance("30m")
    why = cluster.why("cronjob/report")
    assert why.sequence is not None
    [whole] = budgets
    assert whole.left > budget.MOST_OF_ANSWER / 3


def test_answer_whose_budget_is_spent_names_the_cause_and_tries_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = begun(INCIDENTS["quota and taint"])
    monkeypatch.setattr("kubepy.insight.why.question.MOST_OF_ANSWER", 5)
    why = cluster.why("deploy/web")
    assert (why.state, why.cause, why.sequence) == (STUCK, "quota-exceeded", None)
    assert not any(remedy.proven for remedy in why.remedies)


def test_run_that_writes_without_end_within_a_moment_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster.temporary(nodes=3, seed=7)
    cluster.run("create deployment web --image=web:1", check=True)
    cluster.settle()
    cluster.run("scale deployment web --replicas=30 --reconcile=never", check=True)
    monkeypatch.setattr(budget, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(budget, "MOST_OF_RUN", 10)
    with cluster._open() as local:
        why = verdict.explain(verdict.Question(local, Key("deployments.apps", "default", "web")))
    assert why.state == STUCK
