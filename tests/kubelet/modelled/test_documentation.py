"""Steps of the Kubernetes documentation whose outcome needs more than one part of the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubelet.modelled.clusters import PodsCluster, shell
from tests.shell.shells import new_machine


@pytest.fixture
def pods() -> PodsCluster:
    return PodsCluster()


def test_log_of_a_sidecar_shows_what_another_container_has_written_since(pods: PodsCluster) -> None:
    mounts = [{"name": "data", "mountPath": "/opt"}]
    app = shell("while true; do echo logging >> /opt/logs.txt; sleep 1; done", volumeMounts=mounts)
    sidecar = {
        **shell("tail -F /opt/logs.txt", volumeMounts=mounts),
        "name": "shipper",
        "restartPolicy": "Always",
    }
    volumes = [{"name": "data", "emptyDir": {}}]
    pods.create("p", app, initContainers=[sidecar], volumes=volumes)
    pods.advance(4.5)
    assert pods.logs("p", "-c", "shipper").count("logging\n") == 5


def test_deleted_pod_that_never_ran_fails_where_a_finalizer_holds_it(pods: PodsCluster) -> None:
    pods.create("p", {"name": "c", "image": "non-existing-repo/non-existing-image:example"})
    pods.advance(12)
    patch = '{"metadata":{"finalizers":["example.com/hold"]}}'
    pods.run("patch", "pod", "p", "-p", patch)
    pods.run("delete", "pod", "p", "--wait=false")
    pods.advance(1)
    assert pods.pod("p")["status"]["phase"] == "Failed"
    ended = pods.state("p")["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("ContainerStatusUnknown", 137)


def test_security_context_says_whose_processes_and_files_are(pods: PodsCluster) -> None:
    context = {
        "runAsUser": 1000,
        "runAsGroup": 3000,
        "fsGroup": 2000,
        "supplementalGroups": [4000],
    }
    mounts = [{"name": "data", "mountPath": "/data/demo"}]
    volumes = [{"name": "data", "emptyDir": {}}]
    pods.create(
        "p", shell("sleep 1h", volumeMounts=mounts), securityContext=context, volumes=volumes
    )
    assert pods.run("exec", "p", "--", "id") == "uid=1000 gid=3000 groups=2000,3000,4000\n"
    assert "drwxrwsrwx 2 root 2000 4096 Jan  1 00:00 demo" in pods.run(
        "exec", "p", "--", "ls", "-l", "/data"
    )
    script = "cd /data/demo; echo hello > f; mkdir d; touch /tmp/g; stat -c '%u %g %a' f d /tmp/g"
    assert (
        pods.run("exec", "p", "--", "sh", "-c", script)
        == "1000 2000 644\n1000 2000 2755\n1000 3000 644\n"
    )
    user = {"uid": 1000, "gid": 3000, "supplementalGroups": [2000, 3000, 4000]}
    assert pods.status("p")["user"] == {"linux": user}


def test_chown_gives_files_to_others(pods: PodsCluster) -> None:
    pods.create("p", shell("sleep 1h"))
    script = "cd /tmp; mkdir d; touch d/f g; chown -R 7:8 d; chgrp 9 g; stat -c '%u %g' d d/f g"
    assert pods.run("exec", "p", "--", "sh", "-c", script) == "7 8\n7 8\n0 9\n"


def test_ps_shows_the_program_of_an_image_as_the_main_process(pods: PodsCluster) -> None:
    pods.create("p", {"name": "c", "image": "nginx"})
    lines = pods.run("exec", "p", "--", "sh", "-c", "ps ax; ls").splitlines()
    assert [line.split(maxsplit=3) for line in lines[1:5]] == [
        ["1", "root", "0:00", "nginx: master process nginx -g daemon off;"],
        ["2", "nginx", "0:00", "nginx: worker process"],
        ["3", "root", "0:00", "sh -c ps ax; ls"],
        ["4", "root", "0:00", "ps ax"],
    ]
    assert pods.shown("p") == "1/1 Running 0"


def test_shell_with_one_program_gives_it_its_process(pods: PodsCluster) -> None:
    pods.create("p", shell("sleep 1h"))
    assert " 1 root      0:00 sleep 1h\n" in pods.run("exec", "p", "--", "ps")


def test_killed_main_process_of_a_plain_pod_restarts_it(pods: PodsCluster) -> None:
    mounts = [{"name": "data", "mountPath": "/data/redis"}]
    volumes = [{"name": "data", "emptyDir": {}}]
    container = {"name": "c", "image": "redis", "volumeMounts": mounts}
    pods.create("p", container, volumes=volumes)
    pods.run("exec", "p", "--", "sh", "-c", "kill -HUP 1; echo Hello > /data/redis/test-file")
    assert pods.shown("p") == "1/1 Running 0"
    pods.run("exec", "p", "--", "bash", "-c", "kill 1")
    pods.advance(1)
    assert pods.shown("p") == "1/1 Running 1"
    ended = pods.status("p")["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("Completed", 0)
    assert pods.run("exec", "p", "--", "ls", "/data/redis") == "test-file\n"


@pytest.mark.parametrize(
    ("context", "mask"),
    [
        ({}, "00000000a80425fb"),
        ({"capabilities": {"add": ["NET_ADMIN", "SYS_TIME"]}}, "00000000aa0435fb"),
        ({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}, "0000000000000400"),
        ({"capabilities": {"add": ["ALL"], "drop": ["SYS_ADMIN"]}}, "000001ffffdfffff"),
        ({"privileged": True}, "000001ffffffffff"),
        ({"runAsUser": 1000}, "0000000000000000"),
    ],
)
def test_proc_tells_the_capabilities_of_a_process(
    pods: PodsCluster, context: dict[str, object], mask: str
) -> None:
    pods.create("p", {"name": "c", "image": "nginx", "securityContext": context})
    status = pods.run("exec", "p", "--", "sh", "-c", "cd /proc/1; cat status")
    assert f"CapPrm:\t{mask}\nCapEff:\t{mask}\n" in status


def test_proc_tells_the_user_namespace_of_a_pod(pods: PodsCluster) -> None:
    pods.create("host", shell("sleep 1h"))
    pods.create("own", shell("sleep 1h"), hostUsers=False)
    namespaces = {
        name: pods.run("exec", name, "--", "readlink", "/proc/self/ns/user")
        for name in ("host", "own")
    }
    assert namespaces["host"] == "user:[4026531837]\n"
    assert namespaces["own"] != namespaces["host"]
    maps = [pods.run("exec", name, "--", "cat", "/proc/self/uid_map") for name in ("host", "own")]
    assert maps[0].split() == ["0", "0", "4294967295"]
    assert maps[1].split()[0::2] == ["0", "65536"]


def test_proc_is_made_when_it_is_looked_at(pods: PodsCluster) -> None:
    pods.create("p", shell("sleep 1h"))
    script = "tr '\\0' ' ' < /proc/1/cmdline; cat /proc/self/comm; ls /proc; echo x > /proc/new"
    printed = pods.run("exec", "p", "--", "sh", "-c", script)
    assert printed.startswith("sleep 1h sh\n1\n2\nmounts\nself\n")
    assert "Read-only file system" in printed


def test_proc_tells_what_is_mounted(pods: PodsCluster) -> None:
    mount = {"name": "v", "mountPath": "/data", "readOnly": True}
    volume = {"name": "v", "emptyDir": {}}
    pods.create("p", shell("sleep 1h", volumeMounts=[mount]), volumes=[volume])
    printed = pods.run("exec", "p", "--", "cat", "/proc/1/mounts")
    lines = printed.splitlines()
    assert lines[0] == "overlay / overlay rw,relatime 0 0"
    assert "/dev/vda1 /data ext4 ro,relatime 0 0" in lines
    assert pods.run("exec", "p", "--", "cat", "/proc/mounts") == printed


PEERS = """
apiVersion: v1
kind: Service
metadata: {name: headless}
spec:
  clusterIP: None
  selector: {job-name: peers}
---
apiVersion: batch/v1
kind: Job
metadata: {name: peers}
spec:
  completions: 3
  parallelism: 3
  completionMode: Indexed
  template:
    spec:
      subdomain: headless
      restartPolicy: Never
      containers:
      - name: c
        image: bash
        command:
        - bash
        - -c
        - |
          for i in 0 1 2; do
            until ping -c 1 peers-$i.headless > /dev/null 2>&1; do
              sleep 1
            done
            echo "found $i"
          done
"""


def test_pods_of_a_job_find_each_other_though_one_ends_first(
    pods: PodsCluster, tmp_path: Path
) -> None:
    manifest = tmp_path / "peers.yaml"
    manifest.write_text(PEERS)
    pods.run("create", "-f", str(manifest))
    pods.advance(5)
    assert pods.run("get", "job", "peers", "--no-headers").split()[1:3] == ["Complete", "3/3"]


@pytest.mark.parametrize("command", [[], ["sleep", "1h"]])
def test_missing_pull_secret_is_an_event_and_no_obstacle(
    pods: PodsCluster, command: list[str]
) -> None:
    container = {"name": "c", "image": "registry.example.com/own:v1", "command": command}
    pods.run("create", "secret", "docker-registry", "there", "--docker-username=u",
             "--docker-password=p")  # fmt: skip
    pods.create("p", container, imagePullSecrets=[{"name": "there"}, {"name": "wrong"}])
    message = (
        "Unable to retrieve some image pull secrets (wrong); "
        "attempting to pull the image may not succeed."
    )
    assert ("FailedToRetrieveImagePullSecret", message, 1) in pods.events("p")
    pods.create("again", container, imagePullSecrets=[{"name": "wrong"}])
    assert ("FailedToRetrieveImagePullSecret", message, 1) in pods.events("again")
    assert pods.shown("p") == "1/1 Running 0"


def test_shared_process_namespace_shows_the_other_containers(pods: PodsCluster) -> None:
    tools = {**shell("sleep 3600"), "name": "tools"}
    pods.create("p", {"name": "c", "image": "nginx"}, tools, shareProcessNamespace=True)
    lines = pods.run("exec", "p", "-c", "tools", "--", "ps", "ax").splitlines()
    assert [line.split(maxsplit=3)[::3] for line in lines[1:]] == [
        ["1", "/pause"],
        ["8", "nginx: master process nginx -g daemon off;"],
        ["9", "nginx: worker process"],
        ["108", "sleep 3600"],
        ["109", "ps ax"],
    ]
    script = "kill -HUP 8; head -2 /proc/8/root/etc/nginx/nginx.conf; kill 1; readlink /proc/self"
    printed = pods.run("exec", "p", "-c", "tools", "--", "sh", "-c", script)
    assert "user  nginx;" in printed
    assert printed.endswith("\n110\n")
    assert "No such process" not in printed
    assert pods.shown("p") == "2/2 Running 0"
    pods.run("exec", "p", "-c", "tools", "--", "sh", "-c", "kill 8")
    pods.advance(1)
    assert pods.shown("p") == "2/2 Running 1"
    assert pods.status("p")["restartCount"] == 1


def test_sidecar_prints_what_the_last_container_has_written(pods: PodsCluster) -> None:
    mounts = [{"name": "data", "mountPath": "/opt"}]
    sidecar = {
        **shell("tail -F /opt/logs.txt", volumeMounts=mounts),
        "name": "shipper",
        "restartPolicy": "Always",
    }
    app = shell("echo logging > /opt/logs.txt", volumeMounts=mounts)
    volumes = [{"name": "data", "emptyDir": {}}]
    pods.create("p", app, initContainers=[sidecar], volumes=volumes, restartPolicy="Never")
    pods.advance(1)
    assert pods.logs("p", "-c", "shipper").endswith("\nlogging\n")


def test_image_volume_has_the_files_that_are_known_of_its_image(pods: PodsCluster) -> None:
    mounts = [
        {"name": "image", "mountPath": "/volume"},
        {"name": "image", "mountPath": "/part", "subPath": "dir"},
    ]
    volumes = [{"name": "image", "image": {"reference": "quay.io/crio/artifact:v2"}}]
    pods.create("p", shell("sleep 1h", volumeMounts=mounts), volumes=volumes)
    paths = ["/volume/dir/file", "/volume/file", "/part/file"]
    assert pods.run("exec", "p", "--", "cat", *paths) == "1\n2\n1\n"
    assert "Not Known" not in pods.run("describe", "pod", "p")


def test_shell_that_reads_its_input_goes_on_after_an_unknown_program() -> None:
    machine = new_machine()
    script = b"apt-get update && echo updated\nno-such | cat\necho end\n"
    pid = machine.start(["bash"], stdin=script, is_main=True)
    machine.run(machine.now)
    end = machine.exit_of(pid)
    assert end is not None
    printed = b"".join(part.data for part in machine.take_output(pid))
    assert printed == b"updated\nend\n"
    assert machine.unknowns == ["apt-get", "no-such"]


def test_debug_container_sees_the_processes_of_its_target(pods: PodsCluster) -> None:
    pods.create("p", shell("sleep 1h"))
    shown = pods.run("debug", "p", "-i", "--image=busybox", "--target=c", "--", "ps")
    assert " 1 root      0:00 sleep 1h\n" in shown
    assert " root      0:00 ps\n" in shown
    assert "/pause" not in shown


@pytest.mark.parametrize(
    ("script", "length"),
    [
        ("tr -dc a-z < /dev/urandom | head -c 8", 8),
        ("cat /dev/urandom | tr -dc a-z | fold -w 12 | head -n 1", 13),
        ("yes | head -c 100000", 100_000),
        ("yes | head --bytes=7", 7),
    ],
)
def test_begin_of_what_has_no_end_is_taken(pods: PodsCluster, script: str, length: int) -> None:
    pods.create("p", shell(f"({script}) | wc -c"), restartPolicy="Never")
    assert pods.logs("p") == f"{length}\n"
