"""The lives of modelled pods: exits, restarts, init containers, sidecars, termination."""

from __future__ import annotations

import pytest

from kubepy.api.clock import parse_time
from kubepy.kubelet.modelled.logs import PrintedText, dump_log, join_output, parse_log

from .clusters import Object, PodsCluster, shell


@pytest.fixture
def pods() -> PodsCluster:
    return PodsCluster()


@pytest.mark.parametrize(
    ("script", "policy", "shown"),
    [
        ("exit 0", "Never", "0/1 Completed 0"),
        ("exit 3", "Never", "0/1 Error 0"),
        ("exit 0", "OnFailure", "0/1 Completed 0"),
        ("sleep 100", "Never", "1/1 Running 0"),
    ],
)
def test_pod_shows_how_its_program_ends(
    pods: PodsCluster, script: str, policy: str, shown: str
) -> None:
    pods.create("p", shell(script), restartPolicy=policy)
    assert pods.shown("p") == shown


def test_program_that_fails_tells_its_exit_code_and_times(pods: PodsCluster) -> None:
    pods.create("p", shell("echo hello; sleep 10; exit 7"), restartPolicy="Never")
    assert "running" in pods.state("p")
    pods.advance(60)
    ended = pods.state("p")["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (7, "Error")
    assert ended["startedAt"] == "2026-01-01T00:00:00Z"
    assert ended["finishedAt"] == "2026-01-01T00:00:10Z"
    assert pods.logs("p") == "hello\n"


def test_restarts_wait_longer_each_time_up_to_five_minutes(pods: PodsCluster) -> None:
    pods.create("p", shell("exit 1"))
    starts = []
    for second in range(76):
        if pods.status("p")["restartCount"] > len(starts):
            starts.append(second)
        pods.advance(1)
    assert starts[:4] == [0, 10, 30, 70]
    waiting = pods.state("p")["waiting"]
    assert waiting["reason"] == "CrashLoopBackOff"
    assert waiting["message"].startswith("back-off 1m20s restarting failed container=c pod=p_")
    pods.advance(1200)
    assert "back-off 5m0s" in pods.state("p")["waiting"]["message"]


def test_long_run_makes_the_back_off_begin_anew(pods: PodsCluster) -> None:
    pods.create("p", shell("sleep 1300; exit 1"))
    pods.advance(1300)
    assert pods.shown("p").startswith("1/1 Running 1")
    pods.advance(1300)
    assert pods.shown("p").startswith("1/1 Running 2")


def test_restart_rules_of_a_container_decide_by_exit_code(pods: PodsCluster) -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    restarted = shell("sleep 5; exit 42", restartPolicy="Never", restartPolicyRules=rules)
    pods.create("again", restarted, restartPolicy="Never")
    ended = shell("sleep 5; exit 41", restartPolicy="Never", restartPolicyRules=rules)
    pods.create("over", ended, restartPolicy="Never")
    pods.advance(6)
    assert pods.status("again")["restartCount"] == 1
    assert pods.pod("over")["status"]["phase"] == "Failed"


@pytest.mark.parametrize(
    ("policy", "script", "message"),
    [
        ("File", "echo why > /dev/termination-log; exit 1", "why\n"),
        ("FallbackToLogsOnError", "echo printed; exit 1", "printed\n"),
        ("FallbackToLogsOnError", "echo printed; exit 0", None),
        ("File", "echo printed; exit 1", None),
    ],
)
def test_termination_message_comes_from_file_or_log(
    pods: PodsCluster, policy: str, script: str, message: str | None
) -> None:
    container = shell(script, terminationMessagePolicy=policy)
    pods.create("p", container, restartPolicy="Never")
    assert pods.state("p")["terminated"].get("message") == message


def test_init_containers_run_one_after_the_other(pods: PodsCluster) -> None:
    first = {**shell("echo one; sleep 5"), "name": "one"}
    second = {**shell("sleep 5"), "name": "two"}
    pods.create("p", shell("sleep 1000"), initContainers=[first, second])
    assert pods.shown("p") == "0/1 Init:0/2 0"
    assert pods.state("p") == {"waiting": {"reason": "PodInitializing"}}
    pods.advance(5)
    assert pods.shown("p") == "0/1 Init:1/2 0"
    pods.advance(5)
    assert pods.shown("p") == "1/1 Running 0"
    assert pods.logs("p", "-c", "one") == "one\n"


def test_init_container_that_fails_for_good_fails_the_pod(pods: PodsCluster) -> None:
    init = {**shell("exit 2"), "name": "init"}
    pods.create("p", shell("sleep 1000"), initContainers=[init], restartPolicy="Never")
    assert pods.shown("p") == "0/1 Init:Error 0"
    assert pods.pod("p")["status"]["phase"] == "Failed"


def test_init_container_that_fails_is_tried_again(pods: PodsCluster) -> None:
    init = {**shell("exit 2"), "name": "init"}
    pods.create("p", shell("sleep 1000"), initContainers=[init])
    assert pods.shown("p").startswith("0/1 Init:CrashLoopBackOff 1")
    assert pods.pod("p")["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    "container",
    [
        {"name": "i", "image": "example/own"},
        {"name": "i", "image": "busybox", "command": ["git", "clone", "https://example.com/a"]},
        {"name": "i", "image": "busybox", "command": ["sh", "-c", "git clone a && echo cloned"]},
    ],
)
def test_init_container_of_which_nothing_is_known_lets_the_pod_start(
    pods: PodsCluster, container: dict[str, object]
) -> None:
    pods.create("p", {"name": "c", "image": "nginx"}, initContainers=[container])
    assert pods.shown("p") == "1/1 Running 0"


def test_sidecar_of_which_nothing_is_known_runs_on(pods: PodsCluster) -> None:
    sidecar = {"name": "i", "image": "example/own", "restartPolicy": "Always"}
    pods.create("p", {"name": "c", "image": "nginx"}, initContainers=[sidecar])
    assert "running" in pods.state("p", "i")


def test_sidecar_starts_first_and_stops_last(pods: PodsCluster) -> None:
    sidecar = {**shell("trap 'echo bye; exit 0' TERM; while :; do sleep 1; done"), "name": "side"}
    sidecar["restartPolicy"] = "Always"
    pods.create("p", shell("sleep 5"), initContainers=[sidecar], restartPolicy="Never")
    assert pods.shown("p") == "2/2 Running 0"
    pods.advance(10)
    assert pods.pod("p")["status"]["phase"] == "Succeeded"
    assert pods.logs("p", "-c", "side") == "bye\n"


def test_containers_share_an_empty_volume(pods: PodsCluster) -> None:
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    writer = {**shell("echo content > /v/file; sleep 1000", **mount), "name": "writer"}
    reader = {**shell("sleep 1; cat /v/file; sleep 1000", **mount), "name": "reader"}
    pods.create("p", writer, reader, volumes=[{"name": "v", "emptyDir": {}}])
    pods.advance(2)
    assert pods.logs("p", "-c", "reader") == "content\n"


def test_files_that_another_container_has_written_by_now_are_there(pods: PodsCluster) -> None:
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/usr/share/nginx/html"}]}
    path = "/usr/share/nginx/html/index.html"
    script = f"n=0; while true; do echo $n > {path}; n=$((n+10)); sleep 10; done"
    pods.create(
        "p",
        {"name": "web", "image": "nginx", **mount},
        shell(script, **mount),
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    pods.advance(25)
    assert pods.run("exec", "p", "-c", "web", "--", "cat", path) == "20\n"
    pods.advance(10)
    address = pods.pod("p")["status"]["podIP"]
    pods.create("client", shell(f"wget -qO- {address}"), restartPolicy="Never")
    assert pods.logs("client") == "30\n"


def test_program_that_handles_term_ends_by_it(pods: PodsCluster) -> None:
    pods.create("p", shell("trap 'sleep 3; exit 0' TERM; while :; do sleep 1; done"))
    pods.run("delete", "pod", "p", "--wait=false")
    pods.advance(2)
    assert pods.shown("p") == "1/1 Terminating 0"
    pods.advance(3)
    assert "not found" in pods.run("get", "pod", "p")


def test_program_that_ignores_term_is_killed_after_its_grace_period(pods: PodsCluster) -> None:
    container = shell("trap '' TERM; while :; do sleep 1; done")
    pods.create("p", container, terminationGracePeriodSeconds=7)
    pods.run("delete", "pod", "p", "--wait=false")
    pods.advance(6)
    assert pods.shown("p") == "1/1 Terminating 0"
    pods.advance(2)
    assert "not found" in pods.run("get", "pod", "p")


IGNORING = "trap '' TERM; while :; do sleep 1; done"


def test_grace_period_counts_from_the_deletion(pods: PodsCluster) -> None:
    pods.create("p", shell(IGNORING), terminationGracePeriodSeconds=7)
    pods.advance(20)
    pods.run("delete", "pod", "p", "--wait=false")
    pods.advance(6)
    assert pods.shown("p") == "1/1 Terminating 0"
    pods.advance(2)
    assert "not found" in pods.run("get", "pod", "p")


def test_second_deletion_with_less_grace_ends_the_pod_earlier(pods: PodsCluster) -> None:
    pods.create("p", shell(IGNORING), terminationGracePeriodSeconds=300)
    pods.run("delete", "pod", "p", "--wait=false")
    pods.advance(3)
    pods.run("delete", "pod", "p", "--grace-period=10", "--wait=false")
    pods.advance(9)
    assert pods.shown("p") == "1/1 Terminating 0"
    assert ("Killing", "Stopping container c", 2) in pods.events("p")
    pods.advance(1)
    assert "not found" in pods.run("get", "pod", "p")


def test_deletion_now_leaves_two_seconds_after_term(pods: PodsCluster) -> None:
    pods.create("p", shell(IGNORING), terminationGracePeriodSeconds=300)
    pods.run("delete", "pod", "p", "--wait=false")
    pods.advance(3)
    pods.run("delete", "pod", "p", "--now", "--wait=false")
    pods.advance(1)
    assert pods.shown("p") == "1/1 Terminating 0"
    pods.advance(1)
    assert "not found" in pods.run("get", "pod", "p")


def test_longer_grace_of_a_second_deletion_is_ignored(pods: PodsCluster) -> None:
    pods.create("p", shell(IGNORING), terminationGracePeriodSeconds=300)
    pods.run("delete", "pod", "p", "--grace-period=5", "--wait=false")
    pods.advance(1)
    pods.run("delete", "pod", "p", "--grace-period=60", "--wait=false")
    pods.advance(4)
    assert "not found" in pods.run("get", "pod", "p")


@pytest.mark.parametrize("policy", ["Always", "Never"])
@pytest.mark.parametrize(
    "container",
    [{"name": "c", "image": "nginx:1.25"}, {**shell("sleep 1000"), "image": "nginx:1.25"}],
    ids=["plain", "command"],
)
def test_other_image_restarts_the_container(
    pods: PodsCluster, container: Object, policy: str
) -> None:
    pods.create("p", container, restartPolicy=policy)
    pods.advance(5)
    pods.run("set", "image", "pod/p", "c=nginx:1.27")
    pods.advance(0)
    assert pods.shown("p").startswith("1/1 Running 1")
    status = pods.status("p")
    assert status["image"] == "docker.io/library/nginx:1.27"
    assert status["state"]["running"]["startedAt"] == "2026-01-01T00:00:05Z"
    events = pods.events("p")
    assert ("Killing", "Container c definition changed, will be restarted", 1) in events
    assert ("Pulling", 'Pulling image "nginx:1.27"', 1) in events
    assert pods.pod("p")["status"]["observedGeneration"] == 2


def test_other_image_that_cannot_be_pulled_leaves_the_container_waiting() -> None:
    pods = PodsCluster([{"match": {"image": "*:broken"}, "pull": "fails"}])
    pods.create("p", {"name": "c", "image": "nginx:1.25"}, restartPolicy="Never")
    pods.run("set", "image", "pod/p", "c=nginx:broken")
    pods.advance(60)
    assert pods.shown("p").startswith("0/1 ImagePullBackOff 0")
    pods.run("set", "image", "pod/p", "c=nginx:1.25")
    pods.advance(600)
    assert pods.shown("p").startswith("1/1 Running 1")


def test_script_in_a_volume_is_run(pods: PodsCluster) -> None:
    script = {"run.sh": "#!/bin/sh\necho from a volume\n"}
    pods.cluster.client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": script},
        namespace="default",
    )
    volume = {"name": "v", "configMap": {"name": "cm", "defaultMode": 0o755}}
    mounts = [{"name": "v", "mountPath": "/scripts"}]
    container = {"name": "c", "image": "busybox", "volumeMounts": mounts}
    for name in ("run.sh", "none.sh"):
        pods.create(
            name.partition(".")[0],
            {**container, "command": [f"/scripts/{name}"]},
            volumes=[volume],
            restartPolicy="Never",
        )
    assert pods.logs("run") == "from a volume\n"
    ended = pods.state("none")["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    assert 'exec: "/scripts/none.sh": stat /scripts/none.sh: no such file' in ended["message"]


@pytest.mark.parametrize("volume", [{"emptyDir": {}}, {"hostPath": {"path": "/opt/tools"}}])
def test_program_that_is_not_in_a_volume_cannot_be_started_where_its_files_are_known(
    pods: PodsCluster, volume: Object
) -> None:
    mounts = [{"name": "v", "mountPath": "/tools"}]
    container = {"name": "c", "image": "busybox", "command": ["/tools/x"], "volumeMounts": mounts}
    pods.create("p", container, volumes=[{"name": "v", **volume}], restartPolicy="Never")
    if "emptyDir" in volume:
        assert pods.shown("p") == "0/1 StartError 0"
    else:
        assert pods.shown("p") == "1/1 Running 0"
        assert "/tools/x" in pods.run("describe", "pod", "p").partition("Not Known:")[2]


def test_signal_to_a_program_of_which_nothing_is_known_ends_its_container(
    pods: PodsCluster,
) -> None:
    pods.create("p", {"name": "c", "image": "example/web"})
    assert "web" in pods.run("exec", "p", "--", "ps")
    pods.run("exec", "p", "--", "kill", "-9", "1")
    pods.advance(0)
    assert pods.shown("p") == "1/1 Running 0"  # a kernel keeps KILL from the first process
    pods.run("exec", "p", "--", "kill", "1")
    pods.advance(0)
    assert pods.shown("p").startswith("1/1 Running 1")
    assert pods.status("p")["lastState"]["terminated"]["exitCode"] == 0
    pods.run("exec", "p", "--", "kill", "1")
    pods.advance(0)
    assert pods.shown("p").startswith("0/1 CrashLoopBackOff 1")
    pods.advance(10)
    assert pods.shown("p").startswith("1/1 Running 2")


def test_events_of_two_containers_are_counted_apart(pods: PodsCluster) -> None:
    containers = [{"name": name, "image": "nginx"} for name in ("one", "two")]
    pods.create("p", *containers)
    events = pods.events("p")
    assert events.count(("Created", "Container created", 1)) == 2


def test_hook_before_the_stop_takes_its_time(pods: PodsCluster) -> None:
    hook = {"preStop": {"sleep": {"seconds": 5}}}
    pods.create("p", shell("sleep 1000", lifecycle=hook))
    pods.run("delete", "pod", "p", "--wait=false")
    pods.advance(4)
    assert pods.shown("p") == "1/1 Terminating 0"
    pods.advance(2)
    assert "not found" in pods.run("get", "pod", "p")


def test_hook_after_the_start_keeps_the_container_from_being_reported(pods: PodsCluster) -> None:
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "sleep 5; echo x > /started"]}}}
    pods.create("p", shell("sleep 1000", lifecycle=hook))
    assert pods.state("p") == {"waiting": {"reason": "ContainerCreating"}}
    pods.advance(5)
    assert pods.shown("p") == "1/1 Running 0"
    assert pods.run("exec", "p", "--", "cat", "/started") == "x\n"


def test_hook_after_the_start_that_fails_ends_the_container(pods: PodsCluster) -> None:
    hook = {"postStart": {"exec": {"command": ["false"]}}}
    pods.create("p", shell("sleep 1000", lifecycle=hook))
    assert "FailedPostStartHook" in pods.reasons("p")
    assert pods.status("p")["restartCount"] >= 1


def test_hook_after_the_start_reaches_the_own_container(pods: PodsCluster) -> None:
    script = (
        "until curl -sf localhost:80 >/dev/null; do sleep 1; done; echo up > /dev/termination-log"
    )
    web = {"name": "web", "image": "nginx"}
    web["lifecycle"] = {"postStart": {"exec": {"command": ["sh", "-c", script]}}}
    pods.create("p", web, shell("sleep 1000"))
    assert pods.shown("p") == "2/2 Running 0"


def test_server_writes_its_logs_into_a_volume_that_others_see(pods: PodsCluster) -> None:
    mounts = [{"name": "logs", "mountPath": "/var/log/nginx"}]
    web = {"name": "web", "image": "nginx", "volumeMounts": mounts}
    logger = {**shell("tail -f /var/log/nginx/access.log"), "volumeMounts": mounts}
    pods.create("p", web, logger, volumes=[{"name": "logs", "emptyDir": {}}])
    assert pods.shown("p") == "2/2 Running 0"
    assert pods.run("exec", "p", "-c", "c", "--", "ls", "/var/log/nginx") == (
        "access.log\nerror.log\n"
    )


def test_program_that_an_image_lacks_is_not_found(pods: PodsCluster) -> None:
    pods.create("p", {**shell("python3 -c 'print(1)'"), "image": "nginx"}, restartPolicy="Never")
    assert pods.state("p")["terminated"]["exitCode"] == 127
    assert pods.logs("p") == "sh: 1: python3: not found\n"
    bash = {"name": "c", "image": "busybox", "command": ["bash", "-c", "echo hello"]}
    pods.create("q", bash, restartPolicy="Never")
    ended = pods.state("q")["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert 'exec: "bash": executable file not found in $PATH' in ended["message"]


def test_program_may_be_there_after_an_installation(pods: PodsCluster) -> None:
    script = "apt-get install -y curl; curl -s example; echo $?"
    pods.create("p", {**shell(script), "image": "debian"}, restartPolicy="Never")
    assert "apt-get" in pods.run("describe", "pod", "p")
    assert "not found" not in pods.logs("p")


def test_deadline_ends_the_pod(pods: PodsCluster) -> None:
    pods.create("p", shell("sleep 1000"), activeDeadlineSeconds=10)
    pods.advance(11)
    status = pods.pod("p")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


def test_job_of_a_failing_command_reaches_its_back_off_limit(pods: PodsCluster) -> None:
    pods.run("create", "job", "j", "--image=busybox", "--", "false")
    pods.advance(1200)
    job = pods.cluster.client.get("jobs.batch", "j", namespace="default")
    conditions = {each["type"]: each["status"] for each in job["status"]["conditions"]}
    assert conditions["Failed"] == "True"
    assert job["status"]["failed"] == 7


def test_missing_objects_hold_a_pod_up_until_they_are_there(pods: PodsCluster) -> None:
    source = [{"configMapRef": {"name": "env"}}]
    volume = [{"name": "v", "secret": {"secretName": "files"}}]
    mounted = {"envFrom": source, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    pods.create("p", shell("echo $A; cat /v/k; sleep 1000", **mounted), volumes=volume)
    assert pods.state("p") == {"waiting": {"reason": "ContainerCreating"}}
    assert "FailedMount" in pods.reasons("p")
    pods.run("create", "secret", "generic", "files", "--from-literal=k=secret")
    pods.advance(0)
    assert pods.state("p")["waiting"]["reason"] == "CreateContainerConfigError"
    pods.run("create", "configmap", "env", "--from-literal=A=value")
    pods.advance(0)
    assert pods.shown("p") == "1/1 Running 0"
    assert pods.logs("p") == "value\nsecret"


def test_pod_whose_references_are_ignored_runs_without_what_is_missing(pods: PodsCluster) -> None:
    volumes = [
        {"name": "a", "configMap": {"name": "none"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "none"}},
        {"name": "c", "projected": {"sources": [{"secret": {"name": "none"}}]}},
    ]
    reference = {"configMapKeyRef": {"name": "none", "key": "k"}}
    container = shell(
        "echo start:$KEY; touch /b/x; ls /a /b; sleep 100",
        env=[{"name": "KEY", "valueFrom": reference}],
        envFrom=[{"secretRef": {"name": "none"}}],
        volumeMounts=[{"name": name, "mountPath": f"/{name}"} for name in "abc"],
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"kubepy.dev/references": "ignored"}},
        "spec": {"containers": [container], "volumes": volumes, "nodeName": "node-1"},
    }
    pods.cluster.client.create(pod, namespace="default")
    pods.advance(0)
    assert pods.shown("p") == "1/1 Running 0"
    assert pods.logs("p") == "start:\n/a:\n\n/b:\nx\n"
    assert pods.run("exec", "p", "--", "ls", "/b") == "x\n"


@pytest.mark.parametrize("init_containers", [[], [{"name": "i", "image": "busybox"}]])
def test_pod_with_an_annotation_that_cannot_be_read_is_not_started(
    pods: PodsCluster, init_containers: list[Object]
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"kubepy.dev/ready-after": "soon"}},
        "spec": {
            "initContainers": init_containers,
            "containers": [{"name": "c", "image": "nginx"}],
        },
    }
    pods.cluster.client.create(pod, namespace="default")
    pods.advance(0)
    assert pods.shown("p") == "0/1 Pending 0"
    assert pods.reasons("p") == ["InvalidAnnotation"]
    pods.run("annotate", "pod", "p", "kubepy.dev/ready-after=0s", "--overwrite")
    pods.advance(0)
    assert pods.shown("p") == "1/1 Running 0"


@pytest.mark.parametrize(
    "source",
    [
        {"nfs": {"server": "files.example.com", "path": "/"}},
        {"csi": {"driver": "files.example.com"}},
        {"image": {"reference": "example/data:1"}},
    ],
)
def test_volume_of_which_nothing_is_known_is_empty_and_said(
    pods: PodsCluster, source: Object
) -> None:
    container = shell("ls -A /v; sleep 100", volumeMounts=[{"name": "v", "mountPath": "/v"}])
    pods.create("p", container, volumes=[{"name": "v", **source}])
    assert pods.shown("p") == "1/1 Running 0"
    assert pods.logs("p") == ""
    [kind] = source
    note = f'volume "v": the files of {kind} are not known: it is empty'
    assert pods.run("describe", "pod", "p").count(note) == 1


@pytest.mark.parametrize(
    "container",
    [
        {"name": "c", "image": "nginx"},
        shell("while true; do echo $V $(cat /c/key); sleep 5; done"),
    ],
)
def test_running_container_keeps_what_it_got_from_a_config_map_that_is_gone(
    pods: PodsCluster, container: dict[str, object]
) -> None:
    pods.run("create", "configmap", "settings", "--from-literal=key=value")
    reference = {"configMapKeyRef": {"name": "settings", "key": "key"}}
    pods.create(
        "p",
        {
            **container,
            "env": [{"name": "V", "valueFrom": reference}],
            "volumeMounts": [{"name": "v", "mountPath": "/c"}],
        },
        volumes=[{"name": "v", "configMap": {"name": "settings"}}],
    )
    pods.advance(10)
    pods.run("delete", "configmap", "settings")
    pods.advance(10)
    looking = "echo $V $(cat /c/key)"
    assert pods.run("exec", "p", "--", "sh", "-c", looking) == "value value\n"
    assert pods.run("delete", "pod", "p") == 'pod "p" deleted from default namespace\n'


def test_variable_of_a_config_map_stays_when_the_map_changes(pods: PodsCluster) -> None:
    pods.run("create", "configmap", "settings", "--from-literal=key=old")
    source = [{"configMapRef": {"name": "settings"}}]
    pods.create("p", {"name": "c", "image": "nginx", "envFrom": source})
    pods.run("patch", "configmap", "settings", "-p", '{"data":{"key":"new"}}')
    pods.advance(5)
    assert pods.run("exec", "p", "--", "printenv", "key") == "old\n"


def test_volume_of_a_config_map_shows_changes_after_a_minute(pods: PodsCluster) -> None:
    pods.run("create", "configmap", "cm", "--from-literal=k=old")
    volume = [{"name": "v", "configMap": {"name": "cm"}}]
    mount = [{"name": "v", "mountPath": "/v"}]
    script = "while :; do cat /v/k; echo; sleep 40; done"
    pods.create("p", shell(script, volumeMounts=mount), volumes=volume)
    pods.advance(1)
    pods.run("patch", "configmap", "cm", "-p", '{"data": {"k": "new"}}')
    pods.advance(100)
    assert pods.logs("p") == "old\nold\nnew\n"


def test_environment_names_the_api_server_in_every_namespace(pods: PodsCluster) -> None:
    container = {"name": "c", "image": "busybox", "command": ["printenv", "KUBERNETES_PORT"]}
    pods.create("p", container, restartPolicy="Never")
    assert pods.logs("p") == "tcp://10.96.0.1:443\n"


def test_environment_has_only_services_that_are_older_than_the_run(pods: PodsCluster) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}}
    for name in ("before", "after"):
        if name == "after":
            pods.create("p", {"name": "c", "image": "nginx"})
        pods.cluster.client.create({**service, "metadata": {"name": name}}, namespace="default")
    pods.create("later", {"name": "c", "image": "nginx"})
    names = {}
    for pod in ("p", "later"):
        text = pods.run("exec", pod, "--", "printenv")
        names[pod] = [name for name in ("BEFORE", "AFTER") if f"{name}_SERVICE_HOST=" in text]
    assert names == {"p": ["BEFORE"], "later": ["BEFORE", "AFTER"]}


def test_container_of_which_nothing_is_known_listens_where_a_service_leads(
    pods: PodsCluster,
) -> None:
    pods.create("own", {"name": "c", "image": "example/own"})
    listening = "curl -s localhost:9000; curl -s localhost:9001; echo $?"
    assert pods.run("exec", "own", "--", "sh", "-c", listening) == "7\n"
    pods.run("label", "pod", "own", "app=own")
    pods.run("expose", "pod", "own", "--port=80", "--target-port=9000")
    assert pods.run("exec", "own", "--", "sh", "-c", listening) == "own\n7\n"


def test_server_that_echoes_tells_who_asks(pods: PodsCluster) -> None:
    pods.create("echo", {"name": "c", "image": "registry.k8s.io/echoserver:1.10"})
    address = pods.pod("echo")["status"]["podIP"]
    pods.create("client", shell(f"wget -qO- {address}:8080/a"), restartPolicy="Never")
    own = pods.pod("client")["status"]["podIP"]
    lines = pods.logs("client").splitlines()
    assert lines[1:4] == [f"client_address={own}", "command=GET", "real path=/a"]


def test_image_without_a_shell_runs_its_own_program_alone(pods: PodsCluster) -> None:
    pods.create("p", {"name": "c", "image": "registry.k8s.io/pause:3.1"})
    problem = 'exec: "sh": executable file not found in $PATH'
    assert problem in pods.run("exec", "p", "--", "sh")
    assert "stat /bin/ls: no such file" in pods.run("exec", "p", "--", "/bin/ls")


def test_container_finds_its_namespace_where_a_token_is(pods: PodsCluster) -> None:
    script = "cd /var/run/secrets/kubernetes.io/serviceaccount; ls; cat namespace"
    pods.create("p", shell(script), restartPolicy="Never")
    assert pods.logs("p") == "namespace\ntoken\ndefault"
    without = {"restartPolicy": "Never", "automountServiceAccountToken": False}
    pods.create("q", shell("ls /var/run"), **without)
    assert pods.logs("q") == ""


def test_record_of_a_pod_that_was_looked_into_goes_with_the_pod(pods: PodsCluster) -> None:
    pods.create("p", {"name": "c", "image": "nginx"})
    uid = pods.pod("p")["metadata"]["uid"]
    pods.run("exec", "p", "--", "touch", "/tmp/x")
    with pods.cluster._open() as local:
        assert local.client.value(f"pod/{uid}") is not None
    pods.run("delete", "pod", "p")
    with pods.cluster._open() as local:
        assert local.client.value(f"pod/{uid}") is None


def test_rules_about_pulls_memory_and_time_hold() -> None:
    rules = [
        {"match": {"image": "broken*"}, "pull": "fails"},
        {"match": {"image": "slow*"}, "pull": "4s"},
        {"match": {"image": "big*"}, "memory": "250Mi"},
        {"match": {"image": "brief*"}, "runsFor": "3s", "exitCode": 5},
    ]
    pods = PodsCluster(rules)
    limits = {"resources": {"limits": {"memory": "100Mi"}}}
    for name in ("broken", "slow", "brief"):
        pods.create(name, {"name": "c", "image": f"{name}:1"}, restartPolicy="Never")
    pods.create("big", {"name": "c", "image": "big:1", **limits}, restartPolicy="Never")
    assert pods.shown("broken") == "0/1 ImagePullBackOff 0"
    assert pods.shown("slow") == "0/1 ContainerCreating 0"
    assert pods.state("big")["terminated"]["reason"] == "OOMKilled"
    assert pods.state("big")["terminated"]["exitCode"] == 137
    pods.advance(4)
    assert pods.shown("slow") == "1/1 Running 0"
    assert pods.state("brief")["terminated"]["exitCode"] == 5


def test_start_is_told_in_events(pods: PodsCluster) -> None:
    pods.create("p", shell("sleep 1000"))
    pods.create("plain", {"name": "c", "image": "unheard-of:1"})
    assert pods.reasons("p") == ["Pulling", "Pulled", "Created", "Started"]
    assert pods.reasons("plain") == ["Pulling", "Pulled", "Created", "Started"]
    pods.create("second", shell("sleep 1000", imagePullPolicy="IfNotPresent"))
    [pulled] = [message for reason, message, _ in pods.events("second") if reason == "Pulled"]
    assert pulled.endswith("already present on machine and can be accessed by the pod")


def test_same_seed_gives_the_same_bytes() -> None:
    def play() -> str:
        pods = PodsCluster(rules=[{"match": {"image": "r*"}, "pull": "3s..9s"}], seed=7)
        pods.create("p", {"name": "c", "image": "r:1"}, shell("sleep 3; exit 1", name="d"))
        pods.advance(100)
        return pods.run("get", "pods,events", "-o", "yaml")

    assert play() == play()


@pytest.mark.parametrize("word", ["", "sh -c 'echo hi'", "/bin/sh -c x"])
def test_word_that_names_no_program_cannot_be_started(pods: PodsCluster, word: str) -> None:
    pods.create("p", {"name": "c", "image": "busybox", "command": [word]}, restartPolicy="Never")
    assert pods.shown("p") == "0/1 StartError 0"
    assert f'exec: "{word}": ' in pods.state("p")["terminated"]["message"]


def test_shell_of_busybox_says_in_its_words_what_it_cannot_do(pods: PodsCluster) -> None:
    for image, program in (("busybox", "bash"), ("nginx", "python3")):
        script = f"{program}; echo > /nowhere/y; cat < /none; echo $?"
        container = {**shell(script), "image": image}
        pods.create(image, container, restartPolicy="Never")
    assert pods.logs("busybox") == (
        "sh: bash: not found\n"
        "sh: can't create /nowhere/y: nonexistent directory\n"
        "sh: can't open /none: no such file\n1\n"
    )
    assert pods.logs("nginx").startswith("sh: 1: python3: not found\n")


def test_shell_of_an_image_without_one_cannot_be_started(pods: PodsCluster) -> None:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.9", "command": ["sh", "-c", "echo"]}
    pods.create("p", container, restartPolicy="Never")
    assert pods.shown("p") == "0/1 StartError 0"


def test_plain_pod_stops_with_an_event_and_ends_well_at_its_deadline(pods: PodsCluster) -> None:
    pods.create("p", {"name": "c", "image": "nginx"})
    pods.run("delete", "pod", "p")
    assert ("Killing", "Stopping container c", 1) in pods.events("p")
    pods.create("q", {"name": "c", "image": "nginx"}, activeDeadlineSeconds=5)
    pods.advance(10)
    assert pods.state("q")["terminated"]["exitCode"] == 0
    assert ("Killing", "Stopping container c", 1) in pods.events("q")


def test_variable_may_have_bytes_that_are_no_text(pods: PodsCluster) -> None:
    script = r'x=$(printf "\377"); echo "$x" | od -An -tx1; sleep 100'
    pods.create("p", shell(script))
    assert pods.logs("p") == " ff 0a\n"
    assert pods.run("exec", "p", "--", "sh", "-c", script.replace("sleep", ": ")) == " ff 0a\n"
    assert pods.run("exec", "p", "--", "echo", "on") == "on\n"


@pytest.mark.parametrize(
    ("image", "context", "problem"),
    [
        ("nginx:1.27", {}, "container has runAsNonRoot and image will run as root"),
        ("memcached", {}, "image has non-numeric user (memcache)"),
        ("a.example/own:1", {"runAsUser": 0}, "container's runAsUser breaks non-root policy"),
        ("nginx:1.27", {"runAsUser": 1000}, ""),
        ("nginxinc/nginx-unprivileged", {}, ""),
        ("a.example/own:1", {}, ""),
    ],
)
def test_container_that_must_not_run_as_root(
    pods: PodsCluster, image: str, context: Object, problem: str
) -> None:
    container = {"name": "c", "image": image, "securityContext": context}
    pods.create("p", container, securityContext={"runAsNonRoot": True})
    state = pods.state("p")
    if not problem:
        assert "running" in state
        return
    assert state["waiting"]["reason"] == "CreateContainerConfigError"
    assert problem in state["waiting"]["message"]


def test_message_from_a_log_is_valid_text(pods: PodsCluster) -> None:
    script = shell("printf 'a\\377\\n'; exit 1", terminationMessagePolicy="FallbackToLogsOnError")
    pods.create("p", script, restartPolicy="Never")
    assert pods.state("p")["terminated"]["message"] == "a\N{REPLACEMENT CHARACTER}\n"


def test_log_is_kept_byte_by_byte() -> None:
    entries: list[PrintedText] = []
    now = parse_time("2026-01-01T00:00:00Z")
    join_output(
        entries, [(now, "stdout", b"a\xff"), (now, "stdout", b"\xc3"), (now, "stdout", b"\xa9\n")]
    )
    [entry] = parse_log(dump_log(entries))
    assert entry.text.encode("utf-8", "surrogateescape") == b"a\xff\xc3\xa9\n"


@pytest.mark.parametrize(("image", "phase"), [
    ("registry.k8s.io/pause:3.10", "Running"),
    ("nginx", "Running"),
    ("hello-world", "Succeeded"),
    ("shop:1", "Succeeded"),  # nothing is known of it
])  # fmt: skip
def test_pod_of_a_job_ends_unless_its_image_is_known_to_run_on(
    pods: PodsCluster, image: str, phase: str
) -> None:
    pods.run("create", "job", "j", f"--image={image}")
    pods.advance(3600)
    [pod] = pods.cluster.client.list("pods", namespace="default")
    assert pod["status"]["phase"] == phase


def test_program_of_an_image_starts_where_nobody_may_write_to_the_image(pods: PodsCluster) -> None:
    read_only = {"readOnlyRootFilesystem": True}
    command = ["/bin/sh", "-c", "echo test > /file; sleep 240"]
    pods.create("p", {**shell(""), "command": command, "securityContext": read_only})
    assert pods.shown("p") == "1/1 Running 0"
    assert pods.logs("p") == "/bin/sh: can't create /file: Read-only file system\n"


@pytest.mark.parametrize("is_projected", [False, True])
def test_volume_shows_the_labels_that_its_pod_has_now(
    pods: PodsCluster, is_projected: bool
) -> None:
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    volume: Object = {"downwardAPI": {"items": items}}
    if is_projected:
        volume = {"projected": {"sources": [volume]}}
    mounts = [{"name": "info", "mountPath": "/info"}]
    script = "while true; do cat /info/labels; echo; sleep 10; done"
    container = shell(script, volumeMounts=mounts)
    pods.create("p", container, volumes=[{"name": "info", **volume}])
    pods.advance(5)
    pods.run("label", "pod", "p", "colour=red")
    pods.advance(5)
    assert pods.logs("p") == '\ncolour="red"\n'
    pods.run("label", "pod", "p", "colour=blue", "--overwrite")
    assert pods.run("exec", "p", "--", "cat", "/info/labels") == 'colour="blue"'


def test_web_server_of_agnhost_gives_the_files_of_its_container(pods: PodsCluster) -> None:
    image = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
    pods.create("web", {"name": "c", "image": image, "args": ["test-webserver"]})
    address = pods.pod("web")["status"]["podIP"]

    def status(path: str) -> str:
        script = f"wget -S -O /dev/null {address}{path} 2>&1 | head -n 2"
        return pods.run("exec", "client", "--", "sh", "-c", script)

    pods.create("client", shell("sleep 10000"))
    assert "HTTP/1.1 200 OK" in status("/")
    assert "HTTP/1.1 200 OK" in status("/localhost.crt")
    pods.run("exec", "web", "--", "mv", "/localhost.crt", "/tmp/")
    assert "HTTP/1.1 404 Not Found" in status("/localhost.crt")


@pytest.mark.parametrize(("image", "answer"), [
    ("nginx", "HTTP/1.1 400 Bad Request"),
    ("redis", ""),  # what else it speaks is not modelled
])  # fmt: skip
def test_web_server_refuses_what_is_no_http(pods: PodsCluster, image: str, answer: str) -> None:
    pods.create("server", {"name": "c", "image": image})
    address = pods.pod("server")["status"]["podIP"]
    port = {"nginx": 80, "redis": 6379}[image]
    script = f"echo hello | nc -t -w 2 {address} {port}"
    pods.create("client", shell("sleep 10000"))
    output = pods.run("exec", "client", "--", "sh", "-c", script)
    assert output.partition("\r\n")[0] == answer


def test_request_that_is_typed_into_nc_arrives_with_its_headers(pods: PodsCluster) -> None:
    script = "printf 'GET / HTTP/1.1\\nHost: blog.kubernetes.io\\n\\n' | nc kubernetes.io 80"
    pods.create("client", shell("sleep 10000"))
    assert "blog.kubernetes.io" in pods.run("exec", "client", "--", "sh", "-c", script)


@pytest.mark.parametrize(("part", "problem"), [
    ({"subPathExpr": "$(PLACE)"}, "unable to provision SubPath `..`: must not contain '..'"),
    ({"subPathExpr": "$(NONE)"}, "missing value for NONE"),
    ({"subPath": "file/below"},
     'failed to create subPath directory for volumeMount "v" of container "c"'),
])  # fmt: skip
def test_container_waits_for_a_part_of_a_volume_that_cannot_be(
    pods: PodsCluster, part: Object, problem: str
) -> None:
    mounts = [{"name": "v", "mountPath": "/v"}]
    pods.create(
        "p",
        shell(
            "sleep 1000",
            volumeMounts=[{**mounts[0], **part}],
            env=[{"name": "PLACE", "value": ".."}],
        ),
        initContainers=[{**shell("echo > /v/file", volumeMounts=mounts), "name": "i"}],
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    waiting = pods.state("p")["waiting"]
    assert (waiting["reason"], waiting["message"]) == ("CreateContainerConfigError", problem)
    assert f"Error: {problem}" in [message for _, message, _ in pods.events("p")]
