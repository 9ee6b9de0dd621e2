"""The timeline: steps, numbers beside them, bounds; the same however the cluster came to them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.apiserver.cluster import ON_TIMELINE, LocalCluster
from kubepy.apiserver.views import VIEWS
from kubepy.insight import Bounds, Course, Timeline
from kubepy.insight.bounds import Budgets
from kubepy.insight.prediction import predict
from kubepy.insight.revisions import with_rollouts
from kubepy.insight.steps import CHANGES, NO_STEPS
from kubepy.insight.timeline import read_timeline, timeline_document, views_before
from kubepy.storage import Key

from .histories import MANIFEST, counted, history

WEB = Key("deployments.apps", "default", "web")
START = "2026-01-01T00:00:00Z"


def local(cluster: Cluster) -> LocalCluster:
    assert cluster._local is not None
    return cluster._local


def play(cluster: Cluster, *commands: str) -> None:
    for command in commands:
        cluster.run(command, check=True)
        cluster.settle()


def told(timeline: Timeline, resource: str = "") -> list[str]:
    """Return the steps in short: ``+5s ready``, ``+5s scaled 3 to 5``."""
    return [
        " ".join(
            filter(
                None,
                (f"+{(step.at - timeline.since).total_seconds():g}s", step.action, step.reason),
            )
        )
        for step in timeline.steps
        if resource in ("", step.key.resource)
    ]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster.temporary(nodes=3, seed=7) as made:
        made.advance("1h")
        yield made


def test_resources_of_timeline_are_those_with_views_and_steps() -> None:
    assert set(VIEWS) == ON_TIMELINE == set(CHANGES) | NO_STEPS


# --- numbers and steps of random histories ---


@pytest.mark.parametrize("seed", range(14))
def test_numbers_are_those_counted_from_objects(seed: int) -> None:
    cluster = Cluster.temporary(nodes=3, seed=seed)
    workload, events = history(seed)
    marks = []
    for command, stdin, waits in events:
        cluster.run(command, stdin=stdin)
        for seconds in (0, *waits):
            cluster.advance(seconds)
            expected = counted(local(cluster), workload)
            if expected is not None:
                marks.append((cluster.now, local(cluster).client.revision(), expected))
                assert courses(read_timeline(local(cluster)))[workload][-1] == expected, command
    for moment, revision, expected in marks[::3]:
        begun = courses(read_timeline(local(cluster), moment, after_revision=revision))
        assert begun.get(workload, [expected])[0] == expected


def courses(timeline: Timeline) -> dict[Key, list[Any]]:
    return {course.key: [numbers for _, numbers in course.numbers] for course in timeline.courses}


@pytest.mark.parametrize("seed", range(100, 103))
def test_timeline_is_same_however_work_is_divided(seed: int, tmp_path: Path) -> None:
    _, events = history(seed)
    documents = []
    for way in ("at once", "in parts", "forks", "processes"):
        cluster = Cluster.temporary(nodes=3, seed=seed)
        if way == "processes":
            cluster = Cluster.create(tmp_path / "state", nodes=3, seed=seed, clock=START)
        for command, stdin, waits in events:
            cluster.run(command, stdin=stdin)
            for seconds in waits:
                for _ in range(3 if way == "in parts" else 1):
                    cluster.advance(seconds // 3 if way == "in parts" else seconds)
            if way == "processes":
                cluster.close()
                cluster = Cluster.open(tmp_path / "state")
            cluster = cluster.fork() if way == "forks" else cluster
        documents.append(cluster.timeline())
        cluster.close()
    assert len(documents[0]["steps"]) > 20
    assert all(document == documents[0] for document in documents)


# --- pods ---


def test_pod_becomes_available_after_min_ready_seconds(cluster: Cluster) -> None:
    play(
        cluster,
        "create deployment web --image=a:1",
        "annotate nodes --all kubepy.dev/ready-after=5s",
    )
    cluster.advance("1m")
    moment = cluster.now
    cluster.run('patch deployment web -p \'{"spec":{"minReadySeconds":10}}\'', check=True)
    cluster.run("set image deployment/web a=a:2", check=True)
    cluster.advance("14s")
    timeline = read_timeline(local(cluster), moment)
    assert told(timeline, "pods") == ["+0s created", "+0s scheduled", "+0s started", "+5s ready"]
    assert told(timeline, "deployments.apps") == [
        "+0s changed minReadySeconds",
        "+0s changed a:1 to a:2",
    ]
    cluster.advance("1s")
    timeline = read_timeline(local(cluster), moment)
    assert told(timeline)[-4:] == [
        "+15s available",
        "+15s scaled 1 to 0",
        "+15s terminating",
        "+15s deleted",
    ]
    [course] = timeline.courses
    assert {number.available for _, number in course.numbers} == {1, 2}
    assert limits(course) == [Bounds(1, 0, 1)]


def test_raised_min_ready_seconds_make_pods_unavailable(cluster: Cluster) -> None:
    manifest = """
    apiVersion: apps/v1
    kind: ReplicaSet
    metadata: {name: rs}
    spec:
      selector: {matchLabels: {a: b}}
      template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "i:1"}]}}
    """
    cluster.run("apply -f -", stdin=manifest, check=True)
    cluster.settle()
    cluster.advance("20s")
    moment = cluster.now
    cluster.run('patch rs rs -p \'{"spec":{"minReadySeconds":60}}\'', check=True)
    cluster.settle(limit=0)
    assert told(read_timeline(local(cluster), moment)) == [
        "+0s changed minReadySeconds",
        "+0s unavailable",
    ]
    cluster.advance("2m")
    assert told(read_timeline(local(cluster), moment))[2:] == ["+40s available"]


def test_crash_loop_has_each_restart(cluster: Cluster) -> None:
    moment = cluster.now
    play(cluster, "run api --image=a --annotations='kubepy.dev/outcome=crash-loop*3, ready'")
    assert told(read_timeline(local(cluster), moment)) == [
        "+0s created",
        "+0s scheduled",
        "+0s restarted Error",
        "+0s waiting CrashLoopBackOff",
        "+10s restarted Error",
        "+30s restarted Error",
        "+30s ready",
        "+30s available",
    ]


def test_image_pull_back_off_waits_for_reason(cluster: Cluster) -> None:
    moment = cluster.now
    play(
        cluster, "run api --image=a --annotations='kubepy.dev/outcome=image-pull-backoff*2, ready'"
    )
    assert told(read_timeline(local(cluster), moment)) == [
        "+0s created",
        "+0s scheduled",
        "+0s waiting ImagePullBackOff",
        "+10s waiting ErrImagePull",
        "+20s waiting ImagePullBackOff",
        "+30s ready",
        "+30s available",
    ]


def test_pod_that_fits_nowhere_waits(cluster: Cluster) -> None:
    moment = cluster.now
    pod = (
        '{"spec":{"containers":[{"name":"big","image":"i","resources":{"requests":{"cpu":"99"}}}]}}'
    )
    play(cluster, f"run big --image=i --overrides='{pod}'")
    assert told(read_timeline(local(cluster), moment)) == [
        "+0s created",
        "+0s waiting Unschedulable",
    ]


def limits(course: Course) -> list[Bounds]:
    return [bounds for _, bounds in course.bounds]


def test_drain_evicts_and_node_is_cordoned(cluster: Cluster) -> None:
    play(
        cluster,
        "create deployment web --image=a --replicas=3",
        "create pdb web --selector=app=web --min-available=2",
    )
    cluster.advance("1m")
    moment = cluster.now
    play(cluster, "drain node-1", "uncordon node-1")
    timeline = read_timeline(local(cluster), moment)
    assert told(timeline)[:4] == [
        "+0s cordoned",
        "+0s evicted EvictionByEvictionAPI",
        "+0s terminating EvictionByEvictionAPI",
        "+0s deleted",
    ]
    assert told(timeline)[-1] == "+0s uncordoned"
    [course] = timeline.courses
    assert limits(course) == [Bounds(3, 0, 1), Bounds(2, 0, 1, "web"), Bounds(3, 0, 1)]
    play(cluster, "set image deployment/web a=a:2", "delete pdb web", "delete deployment web")
    [course] = read_timeline(local(cluster), moment).courses
    assert limits(course) == [
        Bounds(3, 0, 1),
        Bounds(2, 0, 1, "web"),
        Bounds(3, 0, 1),
        Bounds(is_leaving=True),
    ]
    assert read_timeline(local(cluster), moment + timedelta(seconds=1)).courses == ()


def budgets(cluster: Cluster) -> Budgets:
    present = Budgets()
    for key, seen in views_before(local(cluster), []).items():
        present.replace(key, seen)
    return present


@pytest.mark.parametrize(
    ("budget", "least"),
    [
        ("--min-available=2", 2),
        ("--min-available=50%", 2),
        ("--max-unavailable=2", 1),
        ("--max-unavailable=100%", 0),
        ("--min-available=9", 3),
    ],
)
def test_budget_says_how_many_must_be_healthy(cluster: Cluster, budget: str, least: int) -> None:
    play(
        cluster,
        "create deployment web --image=a --replicas=3",
        f"create pdb web --selector=app=web {budget}",
    )
    assert budgets(cluster).strictest(WEB, 3) == (least, "web")
    assert budgets(cluster).strictest(WEB._replace(name="other"), 3) is None


def test_budget_over_several_workloads_takes_others_as_whole(cluster: Cluster) -> None:
    play(
        cluster,
        "create deployment web --image=a --replicas=3",
        "create deployment api --image=a --replicas=2",
        'patch deployment api -p \'{"spec":{"template":{"metadata":{"labels":{"tier":"x"}}}}}\'',
        'patch deployment web -p \'{"spec":{"template":{"metadata":{"labels":{"tier":"x"}}}}}\'',
        "create pdb both --selector=tier=x --max-unavailable=1",
    )
    assert budgets(cluster).strictest(WEB, 3) == (2, "both")
    assert budgets(cluster).strictest(WEB._replace(name="api"), 2) == (1, "both")


def test_node_that_fails_makes_pods_unready_and_evicts_them(cluster: Cluster) -> None:
    play(cluster, "create deployment web --image=a --replicas=3")
    cluster.advance("1s")
    moment = cluster.now
    cluster.run("annotate node node-2 kubepy.dev/down-until=2026-01-01T03:00:00Z", check=True)
    cluster.settle()
    timeline = read_timeline(local(cluster), moment)
    assert told(timeline, "nodes") == ["+50s not-ready NodeStatusUnknown", "+7199s ready"]
    assert told(timeline, "pods")[:4] == [
        "+50s not-ready",
        "+50s unavailable",
        "+350s evicted DeletionByTaintManager",
        "+350s terminating DeletionByTaintManager",
    ]
    assert told(timeline, "pods")[-1] == "+7199s deleted"
    [course] = timeline.courses
    assert min(number.available for _, number in course.numbers) == 2


# --- other kinds ---


def test_workloads_tell_of_scaling_pauses_and_failures(cluster: Cluster) -> None:
    moment = cluster.now
    play(
        cluster,
        "create deployment web --image=a:1 --replicas=2",
        "scale deployment web --replicas=3",
        "rollout pause deployment web",
        "rollout resume deployment web",
        "delete deployment web",
    )
    timeline = read_timeline(local(cluster), moment)
    assert told(timeline, "deployments.apps") == [
        "+0s created",
        "+0s scaled 2 to 3",
        "+0s paused",
        "+0s resumed",
        "+0s deleted",
    ]
    assert told(timeline, "replicasets.apps") == ["+0s created", "+0s scaled 2 to 3", "+0s deleted"]
    assert courses(timeline)[WEB][-1].pods == 0
    manifest = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {pods: '1'}}"
    cluster.run("apply -f -", stdin=manifest, check=True)
    play(cluster, "create deployment web --image=a:1 --replicas=2")
    timeline = read_timeline(local(cluster), moment)
    assert "+0s failed FailedCreate" in told(timeline, "replicasets.apps")
    assert told(timeline, "deployments.apps")[-1].endswith("failed ProgressDeadlineExceeded")


def test_jobs_and_cron_jobs_have_steps(cluster: Cluster) -> None:
    moment = cluster.now
    play(
        cluster,
        "create job once --image=a",
        "create cronjob often --image=a --schedule='0 2 * * *'",
        *(
            f'patch cronjob often -p \'{{"spec":{{"suspend":{value}}}}}\''
            for value in ("true", "false")
        ),
    )
    cluster.advance("1h")
    timeline = read_timeline(local(cluster), moment)
    assert told(timeline, "cronjobs.batch") == ["+0s created", "+0s suspended", "+0s resumed"]
    assert told(timeline, "jobs.batch") == [
        f"+{seconds}s {step}"
        for seconds in (0, 3600)
        for step in ("created", "completed CompletionsReached")
    ]
    assert told(timeline, "pods")[:4] == [
        "+0s created",
        "+0s scheduled",
        "+0s succeeded",
        "+3600s created",
    ]
    numbers = courses(timeline)
    assert {number.desired for number in numbers[Key("cronjobs.batch", "default", "often")]} == {
        0,
        1,
    }
    assert sorted(numbers) == [
        Key("cronjobs.batch", "default", "often"),
        Key("jobs.batch", "default", "once"),
    ]


def test_change_of_cron_job_names_its_images(cluster: Cluster) -> None:
    moment = cluster.now
    play(
        cluster,
        "create cronjob often --image=a:1 --schedule='0 2 * * *'",
        "set image cronjob/often often=a:2",
        "set env cronjob/often LEVEL=debug",
    )
    timeline = read_timeline(local(cluster), moment)
    assert told(timeline, "cronjobs.batch") == [
        "+0s created",
        "+0s changed a:1 to a:2",
        "+0s changed jobTemplate",
    ]


def test_rollouts_say_what_each_revision_brought(cluster: Cluster) -> None:
    play(
        cluster,
        "create deployment web --image=reg.example/shop/web:1",
        "set image deploy/web web=reg.example/shop/web:2",
        "set env deploy/web LEVEL=debug",
        "set resources deploy/web --limits=cpu=1",
        "create deployment other --image=other:1",
    )
    whole = read_timeline(local(cluster))
    assert whole.rollouts == ()  # only pictures need them
    rollouts = with_rollouts(local(cluster), whole).rollouts
    assert [rollout[2:] for rollout in rollouts if rollout.workload == WEB] == [
        ("web:1", ""),
        ("web:2", ""),
        ("web:2", "env"),
        ("web:2", "resources"),
    ]
    timeline = read_timeline(local(cluster), subject=Key("deployments.apps", "default", "other"))
    timeline = with_rollouts(local(cluster), timeline)
    assert [rollout.images for rollout in timeline.rollouts] == ["other:1"]
    pods = {step.revision for step in timeline.steps if step.key.resource == "pods"}
    assert {rollout.revision for rollout in timeline.rollouts} == pods


def test_claims_and_namespaces_have_steps(cluster: Cluster) -> None:
    moment = cluster.now
    manifest = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: ""}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /tmp}}
"""
    play(cluster, "create namespace shop")
    cluster.run("apply -f -", stdin=manifest, check=True)
    cluster.settle()
    play(cluster, "delete namespace shop")
    timeline = read_timeline(local(cluster), moment)
    assert told(timeline, "persistentvolumeclaims") == [
        "+0s created",
        "+0s bound disk",
        "+0s terminating",
        "+0s deleted",
    ]
    assert told(timeline, "namespaces") == ["+0s created", "+0s terminating", "+0s deleted"]


def test_rollback_renumbers_controller_revision(cluster: Cluster) -> None:
    manifest = """
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: ds}
    spec:
      selector: {matchLabels: {a: b}}
      template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "i:1"}]}}
    """
    moment = cluster.now
    cluster.run("apply -f -", stdin=manifest, check=True)
    cluster.settle()
    play(cluster, "set image ds/ds c=i:2", "rollout undo ds/ds")
    timeline = read_timeline(local(cluster), moment)
    assert told(timeline, "controllerrevisions.apps") == [
        "+0s created",
        "+0s created",
        "+0s changed revision 1 to 3",
    ]
    [course] = timeline.courses
    assert course.numbers[-1][1].updated == 3
    assert limits(course)[-1] == Bounds(2, 1, 0)
    assert max(number.surge for _, number in course.numbers) == 0


def test_revision_of_stateful_set_is_that_of_its_pods(cluster: Cluster) -> None:
    cluster.run(
        "apply -f -",
        stdin=MANIFEST.format(
            kind="StatefulSet", fields="serviceName: x", seconds=0, annotations="", cpu="100m"
        ),
        check=True,
    )
    cluster.settle()
    play(cluster, "set image sts/w c=i:2")
    steps = read_timeline(local(cluster), subject=Key("statefulsets.apps", "default", "w")).steps
    revisions = [
        {
            step.revision
            for step in steps
            if step.key.resource == resource and step.action == "created"
        }
        for resource in ("controllerrevisions.apps", "pods")
    ]
    assert revisions[0] == revisions[1]
    assert len(revisions[0]) == 2


# --- windows, subjects, outside edits ---


def test_since_is_inclusive_and_subject_limits(cluster: Cluster) -> None:
    play(cluster, "create deployment web --image=a", "create deployment other --image=a")
    cluster.advance("1m")
    moment = cluster.now
    play(cluster, "scale deployment web --replicas=2", "scale deployment other --replicas=2")
    assert len(read_timeline(local(cluster), moment).courses) == 2
    assert read_timeline(local(cluster), moment + timedelta(microseconds=1)).steps == ()
    timeline = read_timeline(local(cluster), moment, subject=WEB)
    assert [course.key for course in timeline.courses] == [WEB]
    assert told(timeline) == [
        "+0s scaled 1 to 2",
        "+0s scaled 1 to 2",
        "+0s created",
        "+0s scheduled",
        "+0s ready",
        "+0s available",
    ]
    nodes = {
        step.node
        for step in read_timeline(local(cluster), subject=Key("nodes", "", "node-1")).steps
    }
    assert nodes == {"", "node-1"}


def test_deleted_object_can_be_subject(cluster: Cluster) -> None:
    play(cluster, "create deployment web --image=a", "delete deployment web")
    assert told(read_timeline(local(cluster), subject=WEB), "deployments.apps") == [
        "+0s created",
        "+0s deleted",
    ]


def test_git_checkout_is_on_timeline_that_begins_anew(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Cluster.create(state, nodes=1, seed=7, clock=START) as cluster:
        play(cluster, "create deployment web --image=a:1")
        shutil.copytree(state, tmp_path / "old", ignore=shutil.ignore_patterns(".kubepy"))
        cluster.advance("1h")
        play(
            cluster,
            "set image deployment/web a=a:2",
            "scale deployment web --replicas=2",
            "cordon node-1",
        )
        subprocess.run(["cp", "-r", f"{tmp_path}/old/.", str(state)], check=True)
        timeline = read_timeline(local(cluster))
    assert timeline.since == timeline.until == timeline.steps[0].at
    assert {step.at for step in timeline.steps} == {timeline.until}
    assert told(timeline, "deployments.apps") == [
        "+0s scaled 2 to 1, from outside",
        "+0s changed a:2 to a:1, from outside",
    ]
    assert told(timeline, "nodes") == ["+0s uncordoned from outside"]
    assert told(timeline, "pods") == [
        "+0s created from outside",
        "+0s ready from outside",
        "+0s available",
    ]
    assert courses(timeline)[WEB][0].pods == 2


def test_fork_goes_on_with_timeline_and_predictions_equal_deeds(cluster: Cluster) -> None:
    play(
        cluster,
        "create deployment web --image=a:1 --replicas=3",
        "annotate nodes --all kubepy.dev/ready-after=1s..9s",
    )
    cluster.advance("1m")
    patch = "set image deployment/web a=a:2"
    predicted = predict(local(cluster), lambda fork: Cluster(fork).run(patch, check=True)).timeline
    moment = cluster.now
    play(cluster, patch)
    done = read_timeline(local(cluster), moment)
    assert (predicted.steps, predicted.courses) == (done.steps, done.courses)
    assert told(done)[-1].startswith("+")


def test_prediction_beyond_what_is_kept_is_whole() -> None:
    cluster = Cluster.temporary(nodes=1, seed=7, settings={"timeline": {"keep": "1h"}})
    play(cluster, "create cronjob often --image=a --schedule='0 */2 * * *'")
    prediction = predict(local(cluster), lambda fork: Cluster(fork).advance("12h"), limit=50_000.0)
    assert told(prediction.timeline, "jobs.batch").count("+7200s completed CompletionsReached") == 1
    cluster.advance("12h")
    assert told(read_timeline(local(cluster)), "jobs.batch")[:1] == ["+0s created"]


def test_timeline_that_is_turned_off_is_empty() -> None:
    cluster = Cluster.temporary(nodes=1, settings={"timeline": {"keep": "0s"}})
    play(cluster, "create deployment web --image=a")
    assert timeline_document(read_timeline(local(cluster))) == {
        "kind": "Timeline",
        "since": START,
        "until": START,
        "workloads": [],
        "steps": [],
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"keep": "1 day"}, 'timeline.keep: "1 day" is not a duration such as 24h or 7d'),
        ({"keep": "-1h"}, 'timeline.keep: "-1h" is not a duration such as 24h or 7d'),
        ({"keep": [1]}, 'timeline.keep: "[1]" is not a duration such as 24h or 7d'),
        ({"kept": "1h"}, "timeline.kept: unknown setting: must be keep"),
        ("24h", "timeline: must be a map of keep"),
    ],
)
def test_wrong_setting_is_named(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match="timeline") as error:
        Cluster.temporary(settings={"timeline": value})
    assert str(error.value) == f"settings: {message}"


def test_system_time_that_steps_back_a_little_keeps_timeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster.temporary(nodes=1, clock=None)
    play(cluster, "create deployment web --image=a")
    steps = read_timeline(local(cluster)).steps
    now = local(cluster).clock.now() - timedelta(milliseconds=300)
    monkeypatch.setattr(type(local(cluster).clock), "now", lambda clock: clock.own or now)
    again = read_timeline(local(cluster))
    assert [step[1:] for step in again.steps] == [step[1:] for step in steps]
    assert max(step.at for step in again.steps) <= now
