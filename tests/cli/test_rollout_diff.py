"""`rollout diff`, and what `rollout history -o wide` says of each revision."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from kubepy import Cluster
from kubepy.api.meta import Object
from kubepy.api.schema import openapi
from kubepy.cli.main import main
from kubepy.cli.rollout.changes import changes_of, diff_lines, image_change, summary

WEB = {"name": "web", "image": "nginx:1.15"}


def template(*containers: Object, labels: dict[str, str] | None = None, **spec: object) -> Object:
    return {
        "metadata": {"labels": {"app": "x", **(labels or {})}},
        "spec": {"containers": list(containers), **spec},
    }


def compare(old: Object, new: Object) -> tuple[list[str], str]:
    schema = openapi.schema_for("apps/v1", "Deployment")
    for name in ("spec", "template"):
        schema = schema and schema.field(name)
    changes = changes_of(old, new, schema)
    lines = [line for change in changes for line in diff_lines(change)]
    return [
        f"{line.mark} {line.text}{f'{line.old} -> {line.new}' if line.old else ''}"
        for line in lines
    ], summary(changes, new)


@pytest.mark.parametrize(
    ("old", "new", "lines", "line"),
    [
        (
            template(WEB),
            template({**WEB, "image": "nginx:1.16", "env": [{"name": "A", "value": "1"}]}),
            [
                "~ containers[web].image: nginx:1.15 -> nginx:1.16",
                '+ containers[web].env[A].value: "1"',
            ],
            "image web nginx:1.15 -> 1.16, +env A",
        ),
        (
            template({**WEB, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "x"}]}),
            template({**WEB, "env": [{"name": "A", "value": "2"}]}),
            ['~ containers[web].env[A].value: "1" -> "2"', "- containers[web].env[B].value: x"],
            "env A 1 -> 2, -env B",
        ),
        (
            template({**WEB, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "x"}]}),
            template({**WEB, "env": [{"name": "B", "value": "x"}, {"name": "A", "value": "1"}]}),
            ["~ containers[web].env, in another order: A, B -> B, A"],
            "order of env",
        ),
        (
            template(
                {**WEB, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
            ),  # a name twice
            template({**WEB, "env": [{"name": "A", "value": "1"}]}),
            [
                "~ containers[web].env:",
                "    - name: A",
                '      value: "1"',
                "-   - name: A",
                '-     value: "2"',
            ],
            "~env",
        ),
        (
            template(WEB),
            template(
                {
                    **WEB,
                    "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
                }
            ),
            [
                "+ containers[web].readinessProbe:",
                "+   httpGet:",
                "+     path: /",
                "+     port: 80",
                "+   periodSeconds: 5",
            ],
            "+readinessProbe",
        ),
        (
            template(
                WEB,
                {
                    "name": "side",
                    "image": "a",
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                },
            ),
            template(WEB, {"name": "side", "image": "a", "resources": {"limits": {"cpu": "500m"}}}),
            [
                '~ containers[side].resources.limits.cpu: "1" -> 500m',
                "- containers[side].resources.limits.memory: 1Gi",
            ],
            "resources.limits.cpu (side) 1 -> 500m, -resources.limits.memory (side)",
        ),
        (
            template({**WEB, "args": ["a", "b", "c"]}),
            template({**WEB, "args": ["a", "c"]}),
            ["~ containers[web].args:", "    - a", "-   - b", "    - c"],
            "~args",
        ),
        (
            template(WEB, labels={"tier": "web"}),
            template(WEB, labels={"tier": "db", "app.kubernetes.io/x": "1"}),
            ['+ template.labels[app.kubernetes.io/x]: "1"', "~ template.labels[tier]: web -> db"],
            "+label app.kubernetes.io/x, label tier web -> db",
        ),
        (
            template(WEB),
            template(
                WEB,
                {"name": "side", "image": "b"},
                volumes=[{"name": "v", "configMap": {"name": "c"}}],
            ),
            ["+ containers[side].image: b", "+ volumes[v].configMap.name: c"],
            "+container side, +volume v",
        ),
        (
            template({**WEB, "ports": [{"containerPort": 80}]}),
            template({**WEB, "ports": [{"containerPort": 81}]}),
            ["- containers[web].ports[80/TCP]", "+ containers[web].ports[81/TCP]"],
            "-port 80/TCP, +port 81/TCP",
        ),
        (
            template(WEB, imagePullSecrets=[{"name": "a"}]),
            template(WEB),
            ["- imagePullSecrets[a]"],
            "-imagePullSecret a",
        ),
        (
            template(WEB, tolerations=[{"key": "a"}]),
            template(WEB, tolerations=[{"key": "b"}]),
            ["~ tolerations:", "-   - key: a", "+   - key: b"],
            "~tolerations",
        ),
        (
            template(WEB, hostNetwork=True),
            template(WEB, hostNetwork=False),
            ["~ hostNetwork: true -> false"],
            "hostNetwork true -> false",
        ),
        (
            template(WEB, priority=1),
            template(WEB, priority=True),
            ["~ priority: 1 -> true"],
            "priority 1 -> true",
        ),
        (
            template({**WEB, "command": ["x\n" * 20 + "a\n"]}),
            template({**WEB, "command": ["x\n" * 20 + "b\n"]}),
            ["~ containers[web].command:", "    ...", "      x", "      x", "-     a", "+     b"],
            "~command",
        ),
        (
            template(WEB, labels={"pod-template-hash": "a", "controller-revision-hash": "a"}),
            template(WEB, labels={"pod-template-hash": "b"}),
            [],
            "",
        ),
        (
            {**template(WEB), "metadata": {"creationTimestamp": None}},
            {**template(WEB), "metadata": {"labels": {}}},
            [],
            "",
        ),
        (
            {**template(WEB), "metadata": {"name": "a"}},
            {**template(WEB), "metadata": {"name": "b"}},
            ["~ template.name: a -> b"],
            "name a -> b",
        ),
    ],
)
def test_changes_of_template_are_named(
    old: Object, new: Object, lines: list[str], line: str
) -> None:
    assert compare(old, new) == (lines, line)


def test_changes_of_a_long_value_take_two_lines() -> None:
    old, new = ("registry.example.com/team/" + letter * 40 for letter in "ab")
    lines, line = compare(template({**WEB, "image": old}), template({**WEB, "image": new}))
    assert lines == ["~ containers[web].image:", f"-   {old}", f"+   {new}"]
    assert line == f"image web {old} -> {new}"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("nginx:1", "nginx:2", "nginx:1 -> 2"),
        ("nginx", "nginx:2", "nginx -> 2"),
        ("nginx:1", "nginx", "nginx:1 -> nginx"),
        ("a:5000/nginx:1", "a:5000/nginx:2", "a:5000/nginx:1 -> 2"),
        ("a:5000/nginx", "b:5000/nginx", "a:5000/nginx -> b:5000/nginx"),
        ("nginx:1", "nginx@sha256:" + "0123456789abcdef" * 4, "nginx:1 -> @sha256:0123456789ab"),
    ],
)
def test_image_change_names_the_rest_once(old: str, new: str, text: str) -> None:
    assert image_change(old, new) == text


# --- commands -------------------------------------------------------------------------------------

Run = Callable[..., str]


@pytest.fixture(params=["deployment", "daemonset", "statefulset"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(kind: str) -> Cluster:
    """A cluster with a workload of three revisions: 1 (first), 2 (image), 3 (a label)."""
    cluster = Cluster.temporary(nodes=2)
    kind_name = {
        "deployment": "Deployment",
        "daemonset": "DaemonSet",
        "statefulset": "StatefulSet",
    }[kind]
    pod = template(WEB)
    cluster.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": kind_name,
            "metadata": {"name": "web", "annotations": {"kubernetes.io/change-cause": "first"}},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": pod},
        }
    )
    cluster.settle()
    cluster.client.patch(
        f"{kind}/web",
        {
            "metadata": {"annotations": {"kubernetes.io/change-cause": "second"}},
            "spec": {
                "template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.16"}]}}
            },
        },
    )
    cluster.settle()
    cluster.client.patch(
        f"{kind}/web", {"spec": {"template": {"metadata": {"labels": {"tier": "front"}}}}}
    )
    cluster.settle()
    return cluster


def test_rollout_diff_compares_current_revision_with_the_one_before(
    cluster: Cluster, kind: str
) -> None:
    result = cluster.run(f"rollout diff {kind}/web")
    assert (result.stdout, result.stderr, result.status) == (
        f"{kind}.apps/web revision 2 -> 3\n+ template.labels[tier]: front\n",
        "",
        0,
    )
    assert cluster.run(f"rollout diff {kind} web").stdout == result.stdout
    assert cluster.run(f"rollout diff {kind} web --from-revision=1").stdout == (
        f"{kind}.apps/web revision 1 -> 3\n"
        "~ annotations[kubernetes.io/change-cause]: first -> second\n"
        "+ template.labels[tier]: front\n"
        "~ containers[web].image: nginx:1.15 -> nginx:1.16\n"
    )
    assert cluster.run(f"rollout diff {kind} web --to-revision=2 --from-revision=1").stdout == (
        cluster.run(f"rollout diff {kind} web --to-revision=2").stdout
    )
    assert cluster.run(f"rollout diff {kind} web --from-revision=3").stdout == (
        f"{kind}.apps/web revision 3 -> 3: no differences\n"
    )


def test_rollout_diff_after_undo_shows_what_it_took_back(cluster: Cluster, kind: str) -> None:
    cluster.run(f"rollout undo {kind}/web --to-revision=1", check=True)
    cluster.settle()
    lines = cluster.run(f"rollout diff {kind}/web", check=True).stdout.splitlines()
    assert lines[0] == f"{kind}.apps/web revision 3 -> 4"
    assert lines[-2:] == [
        "- template.labels[tier]: front",
        "~ containers[web].image: nginx:1.16 -> nginx:1.15",
    ]
    assert cluster.run(f"rollout history {kind}/web -o wide").stdout.splitlines()[1:-1] == [
        "REVISION  CHANGE-CAUSE  CHANGE",
        "2         second        <none>",
        "3         second        +label tier",
        "4         first         image web nginx:1.16 -> 1.15, -label tier",
    ]


def test_rollout_diff_for_programs_has_paths_and_values(cluster: Cluster, kind: str) -> None:
    resource = f"{kind}s.apps"
    expected = {
        "kind": "RevisionDiff",
        "resource": resource,
        "namespace": "default",
        "name": "web",
        "fromRevision": 2,
        "toRevision": 3,
        "changes": [{"path": "template.labels[tier]", "from": None, "to": "front"}],
    }
    assert json.loads(cluster.run(f"rollout diff {kind}/web -o json").stdout) == expected
    assert cluster.run(f"rollout diff {kind}/web {kind}/web -o yaml").stdout.count("---\n") == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--from-revision=9", "unable to find specified revision 9 in history"),
        ("--to-revision=9", "unable to find specified revision 9 in history"),
        ("--to-revision=1", 'there is no revision before revision 1 of {kind} "web"'),
        ("--from-revision=-1", "revision must be a positive integer: -1"),
        (
            "-o name",
            'unable to match a printer suitable for the output format "name", allowed formats '
            "are: json,kyaml,yaml",
        ),
    ],
)
def test_rollout_diff_refuses_revisions_that_do_not_exist(
    cluster: Cluster, kind: str, flags: str, message: str
) -> None:
    result = cluster.run(f"rollout diff {kind}/web {flags}")
    assert (result.stdout, result.stderr, result.status) == (
        "",
        f"error: {message.format(kind=kind)}\n",
        1,
    )


def test_history_without_wide_is_unchanged(cluster: Cluster, kind: str) -> None:
    assert cluster.run(f"rollout history {kind}/web").stdout == (
        f"{kind}.apps/web \nREVISION  CHANGE-CAUSE\n1         first\n2         second\n3         "
        f"second\n\n"
    )
    assert cluster.run(f"rollout history {kind}/web -o wide --revision=2").stdout == (
        cluster.run(f"rollout history {kind}/web --revision=2").stdout
    )
    assert (
        "unable to match a printer"
        in cluster.run(f"rollout history {kind}/web -o wide --template=x").stderr
    )
    assert cluster.run(f"rollout history {kind}/web -o foo").stderr.endswith(
        ",templatefile,wide,yaml\n"
    )


class Terminal(io.StringIO):
    """A terminal of 80 columns, which does not say so."""

    def isatty(self) -> bool:
        return True


def on_terminal(cluster: Cluster, *words: str) -> str:
    out = Terminal()
    with cluster._open() as local:
        main(words, stdout=out, stderr=io.StringIO(), open_cluster=local)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["deployment"], indirect=True)
def test_rollout_diff_on_terminal_has_colours(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    line = on_terminal(cluster, "rollout", "diff", "deploy/web").splitlines()[1]
    assert line == "\033[32m+ template.labels[tier]: front\033[0m"
    line = on_terminal(cluster, "rollout", "diff", "deploy/web", "--to-revision=2").splitlines()[2]
    assert (
        line == "\033[33m~\033[0m containers[web].image: \033[31mnginx:1.15\033[0m -> "
        "\033[32mnginx:1.16\033[0m"
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in on_terminal(cluster, "rollout", "diff", "deploy/web")


@pytest.mark.parametrize("kind", ["deployment"], indirect=True)
def test_history_wide_on_terminal_is_cut_to_its_width(cluster: Cluster) -> None:
    cluster.client.patch(
        "deploy/web",
        {"spec": {"template": {"metadata": {"labels": {"a" * 60: "b", "c" * 60: "d"}}}}},
    )
    cluster.settle()
    lines = on_terminal(cluster, "rollout", "history", "deploy/web", "-o", "wide").splitlines()
    assert max(map(len, lines)) == 80
    assert lines[-2].endswith("...")
    assert (
        max(map(len, cluster.run("rollout history deploy/web -o wide").stdout.splitlines())) > 120
    )


@pytest.mark.parametrize("kind", ["deployment"], indirect=True)
def test_rollout_diff_of_paused_deployment_notes_what_is_no_revision_yet(cluster: Cluster) -> None:
    cluster.run("rollout pause deploy/web", check=True)
    assert not cluster.run("rollout diff deploy/web").stderr
    cluster.run("set image deploy/web web=nginx:9", check=True)
    result = cluster.run("rollout diff deploy/web")
    assert result.stdout == "deployment.apps/web revision 2 -> 3\n+ template.labels[tier]: front\n"
    assert result.stderr == (
        "note: the pod template of deployment.apps/web has been changed since, which is not a "
        "revision yet: it is paused\n"
    )
    assert not cluster.run("rollout diff deploy/web --to-revision=3").stderr


@pytest.mark.parametrize("kind", ["deployment"], indirect=True)
def test_rollout_diff_of_added_container_is_without_defaults(cluster: Cluster) -> None:
    cluster.client.patch(
        "deploy/web",
        {
            "spec": {
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "side",
                                "image": "busybox",
                                "livenessProbe": {"tcpSocket": {"port": 80}},
                            }
                        ],
                        "volumes": [{"name": "v", "emptyDir": {}}],
                    }
                }
            }
        },
    )
    cluster.settle()
    assert cluster.run("rollout diff deploy/web").stdout.splitlines()[1:] == [
        "+ containers[side]:",
        "+   image: busybox",
        "+   livenessProbe:",
        "+     tcpSocket:",
        "+       port: 80",
        "+ volumes[v].emptyDir: {}",
    ]


@pytest.mark.parametrize("kind", ["daemonset"], indirect=True)
def test_rollout_diff_ignores_defaults_that_an_old_revision_lacks(cluster: Cluster) -> None:
    revision = next(
        revision
        for revision in cluster.client.list("controllerrevisions")
        if revision["revision"] == 2
    )
    del revision["data"]["spec"]["template"]["spec"]["restartPolicy"]
    revision["data"]["spec"]["template"]["metadata"]["creationTimestamp"] = None
    name = revision["metadata"]["name"]
    cluster.client.delete("controllerrevision", name)
    cluster.client.create(
        {
            **revision,
            "metadata": {
                key: revision["metadata"][key]
                for key in ("name", "labels", "annotations", "ownerReferences")
            },
        }
    )
    assert cluster.run("--reconcile=never rollout diff ds/web").stdout == (
        "daemonset.apps/web revision 2 -> 3\n+ template.labels[tier]: front\n"
    )
