"""Two branches of a repository that keeps a cluster are merged by git, and the controllers go on
from the result."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.cli.git.conftest import Repository

WORKLOADS = ("ds/agent", "deploy/web", "deploy/new", "sts/db")


class Pair(NamedTuple):
    """A change on each of two branches, and values expected in the merged cluster: (object,
    jsonpath, value)."""

    ours: str
    theirs: str
    merged: tuple[tuple[str, str, str], ...]


IMAGE = "{.spec.template.spec.containers[0].image}"
ENV = "{.spec.template.spec.containers[0].env[*].name}"
PAIRS = {
    "daemonset image and env": Pair(
        "set image ds/agent agent=agent:2",
        "set env ds/agent -c agent COLOUR=red",
        (("ds/agent", IMAGE, "agent:2"), ("ds/agent", ENV, "LEVEL COLOUR")),
    ),
    "daemonset images of two containers": Pair(
        "set image ds/agent agent=agent:2",
        "set image ds/agent proxy=proxy:2",
        (("ds/agent", "{.spec.template.spec.containers[*].image}", "agent:2 proxy:2"),),
    ),
    "daemonset rolled out twice and its strategy": Pair(
        "set image ds/agent agent=agent:2\nset image ds/agent agent=agent:3",
        """patch ds agent -p '{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":3}}}}'""",  # noqa: E501
        (
            ("ds/agent", IMAGE, "agent:3"),
            ("ds/agent", "{.spec.updateStrategy.rollingUpdate.maxUnavailable}", "3"),
        ),
    ),
    "daemonset there and back, and env": Pair(
        "set image ds/agent agent=agent:2\ncontroller --once\nset image ds/agent agent=agent:1",
        "set env ds/agent -c agent COLOUR=red",
        (("ds/agent", IMAGE, "agent:1"), ("ds/agent", ENV, "LEVEL COLOUR")),
    ),
    "daemonset same change": Pair(
        "set image ds/agent agent=agent:2",
        "set image ds/agent agent=agent:2",
        (("ds/agent", IMAGE, "agent:2"),),
    ),
    "daemonset restarted on both": Pair(
        "rollout restart ds/agent",
        "rollout restart ds/agent\nlabel ds agent team=b",
        (("ds/agent", "{.metadata.labels.team}", "b"),),
    ),
    "deployment image and scale": Pair(
        "set image deploy/web web=web:2",
        "scale deploy/web --replicas=5",
        (("deploy/web", IMAGE, "web:2"), ("deploy/web", "{.spec.replicas}", "5")),
    ),
    "deployment env and resources": Pair(
        "set env deploy/web COLOUR=red",
        "set resources deploy/web --limits=cpu=1",
        (
            ("deploy/web", ENV, "COLOUR"),
            ("deploy/web", "{.spec.template.spec.containers[0].resources.limits.cpu}", "1"),
        ),
    ),
    "deployment annotation and image": Pair(
        "annotate deploy web note=x",
        "set image deploy/web web=web:2",
        (("deploy/web", "{.metadata.annotations.note}", "x"), ("deploy/web", IMAGE, "web:2")),
    ),
    "statefulset image and scale down": Pair(
        "set image sts/db db=db:2",
        "scale sts/db --replicas=1",
        (("sts/db", IMAGE, "db:2"), ("sts/db", "{.spec.replicas}", "1")),
    ),
    "statefulset image and env": Pair(
        "set image sts/db db=db:2",
        "set env sts/db COLOUR=red",
        (("sts/db", IMAGE, "db:2"), ("sts/db", ENV, "COLOUR")),
    ),
    "statefulset scale up and labels": Pair(
        "scale sts/db --replicas=5",
        "label sts db team=b\nlabel pod db-0 colour=red",
        (("sts/db", "{.spec.replicas}", "5"), ("pod/db-0", "{.metadata.labels.colour}", "red")),
    ),
    "service port and selector": Pair(
        """patch svc web --type=json -p '[{"op":"add","path":"/spec/ports/-","value":{"name":"admin","port":81}}]'""",  # noqa: E501
        """patch svc web -p '{"spec":{"sessionAffinity":"ClientIP","ports":[{"name":"raw","port":82}]}}'""",  # noqa: E501
        (
            ("svc/web", "{.spec.ports[*].port}", "82 80 81"),
            ("svc/web", "{.spec.sessionAffinity}", "ClientIP"),
        ),
    ),
    "configmap keys and labels": Pair(
        """patch cm settings -p '{"data":{"colour":"red","level":null}}'""",
        """patch cm settings -p '{"data":{"size":"big"},"metadata":{"labels":{"tier":"x"}}}'""",
        (
            ("cm/settings", "{.data.colour}{.data.level}{.data.size}", "redbig"),
            ("cm/settings", "{.metadata.labels.tier}{.metadata.labels.team}", "xa"),
        ),
    ),
    "node cordoned and tainted": Pair(
        "cordon node-1",
        "taint node node-1 dedicated=x:PreferNoSchedule\nlabel node node-1 disk=ssd",
        (
            ("node/node-1", "{.spec.unschedulable}{.metadata.labels.disk}", "truessd"),
            ("node/node-1", "{.spec.taints[?(@.key=='dedicated')].value}", "x"),
        ),
    ),
    "node drained and daemonset rolled": Pair(
        "drain node-1 --ignore-daemonsets --force",
        "set image ds/agent agent=agent:2\nset image deploy/web web=web:2",
        (("ds/agent", IMAGE, "agent:2"), ("node/node-1", "{.spec.unschedulable}", "true")),
    ),
    "namespace labelled and filled": Pair(
        "label ns default team=a\ncreate ns extra\ncreate cm one -n extra",
        "annotate ns default note=x\ncreate ns extra\ncreate cm two -n extra",
        (("ns/default", "{.metadata.labels.team}{.metadata.annotations.note}", "ax"),),
    ),
    "autoscaler and budget": Pair(
        """patch hpa web -p '{"spec":{"minReplicas":2}}'\npatch pdb web -p '{"spec":{"minAvailable":2}}'""",  # noqa: E501
        """patch hpa web -p '{"spec":{"maxReplicas":9}}'\nlabel pdb web team=b\nscale deploy web --replicas=4""",  # noqa: E501
        (
            ("hpa/web", "{.spec.minReplicas}{.spec.maxReplicas}", "29"),
            ("pdb/web", "{.spec.minAvailable}{.metadata.labels.team}", "2b"),
        ),
    ),
    "cronjob schedule and image": Pair(
        """patch cj report -p '{"spec":{"schedule":"0 4 * * *"}}'\ncreate job once --image=x""",
        """set image cj/report main=report:2\ncreate job once --image=x""",
        (
            ("cj/report", "{.spec.schedule}", "0 4 * * *"),
            ("cj/report", "{.spec.jobTemplate.spec.template.spec.containers[0].image}", "report:2"),
        ),
    ),
    "claim used on both": Pair(
        """run reader --image=x --overrides='{"spec":{"volumes":[{"name":"v","persistentVolumeClaim":"""  # noqa: E501
        """{"claimName":"cache"}}]}}'""",
        """label pvc cache team=b\nrun writer --image=x --overrides='{"spec":{"volumes":[{"name":"v","""  # noqa: E501
        """"persistentVolumeClaim":{"claimName":"cache"}}]}}'""",
        (("pvc/cache", "{.metadata.labels.team}", "b"),),
    ),
    "workloads removed and others changed": Pair(
        "delete deploy web\ndelete svc web",
        "set image ds/agent agent=agent:2\ndelete pod db-1",
        (("ds/agent", IMAGE, "agent:2"),),
    ),
    "the same objects created on both": Pair(
        "create deploy new --image=x --replicas=2\ncreate svc clusterip new --tcp=80\nlabel "
        "deploy new a=1",
        "create deploy new --image=x --replicas=2\ncreate svc clusterip new --tcp=80\nlabel "
        "deploy new b=2",
        (("deploy/new", "{.metadata.labels.a}{.metadata.labels.b}", "12"),),
    ),
    "undone on one, rolled out on the other": Pair(
        "set image ds/agent agent=agent:2\ncontroller --once\nrollout undo ds/agent\nlabel ds "
        "agent x=y",
        "set image ds/agent agent=agent:2\nset image deploy/web web=web:2",
        (("ds/agent", "{.metadata.labels.x}", "y"),),
    ),
}


@pytest.mark.parametrize("runs_controllers", [False, True], ids=["intent", "controllers"])
@pytest.mark.parametrize("name", PAIRS)
def test_branches_that_changed_different_fields_merge(
    repository: Repository, name: str, runs_controllers: bool
) -> None:
    pair = PAIRS[name]
    for branch, script in (("ours", pair.ours), ("theirs", pair.theirs)):
        whole = script + "\ncontroller --once" * runs_controllers
        repository.branch(branch, lambda whole=whole: repository.play(whole))
    merge(repository, "ours", "theirs")
    check_no_lie(repository)
    for target, path, value in pair.merged:
        assert repository.kubepy("get", target, "-o", f"jsonpath={path}") == value, target
    check_cluster(repository)


def merge(repository: Repository, ours: str, theirs: str) -> None:
    """Merge by git; only conflicts that ``kubepy git resolve`` settles are allowed."""
    repository.git("checkout", "-q", ours)
    done = repository.run_git("merge", "-q", "--no-edit", theirs)
    if done.returncode:
        assert "CONFLICT (modify/delete)" in done.stdout
        assert "CONFLICT (content)" not in done.stdout, done.stdout + done.stderr
        repository.kubepy("git", "resolve")
        repository.git("commit", "-q", "--no-edit")
    assert repository.git("status", "--porcelain") == ""


CONTAINERS = "{.spec.containers[*]['name','image','env']}"


def pods_of(repository: Repository, workload: str) -> list[str]:
    """Return the containers of each pod."""
    app = repository.kubepy("get", workload, "-o", "jsonpath={.spec.template.metadata.labels.app}")
    lines = f"jsonpath={{range .items[*]}}{CONTAINERS}{{'\\n'}}{{end}}"
    return repository.kubepy("get", "pods", "-l", f"app={app}", "-o", lines).splitlines()


def template_of(repository: Repository, workload: str) -> str:
    return repository.kubepy(
        "get", workload, "-o", f"jsonpath={CONTAINERS.replace('.spec', '.spec.template.spec')}"
    )


def present(repository: Repository) -> list[str]:
    return [
        one
        for one in WORKLOADS
        if repository.kubepy("get", one, "--ignore-not-found", "-o", "name")
    ]


def check_no_lie(repository: Repository) -> None:
    """Check, right after the merge, that a rollout is reported as done only where all pods have the
    current template."""
    for workload in present(repository):
        said = repository.kubepy(
            "rollout", "status", workload, "--watch=false", "--reconcile=never"
        )
        if "successfully rolled out" in said or "rolling update complete" in said:
            assert set(pods_of(repository, workload)) <= {template_of(repository, workload)}, said


def check_cluster(repository: Repository) -> None:
    repository.kubepy("controller", "--once")
    for workload in present(repository):
        repository.kubepy("rollout", "status", workload)
        wanted = repository.kubepy(
            "get", workload, "-o", "jsonpath={.spec.replicas}{.status.desiredNumberScheduled}"
        )
        assert pods_of(repository, workload) == [template_of(repository, workload)] * int(wanted), (
            workload
        )
    assert "no problems" in repository.kubepy("fsck")
