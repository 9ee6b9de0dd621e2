"""The table of well-known images: each fact says where it is documented; what some of them do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kubepy.apiserver.rule_settings import Length
from kubepy.kubelet import images
from kubepy.kubelet.behaviours import Behaviour, Behaviours, schedule_of

TABLE: list[dict[str, Any]] = json.loads(
    (Path(images.__file__).parent / "data" / "images.json").read_bytes()
)


def behaviour_of(image: str, **container: Any) -> Behaviour:
    fields = {"name": "main", "image": image, **container}
    pod: Any = {"metadata": {"name": "web-1", "namespace": "default"}, "spec": {}}
    pod["spec"]["containers"] = [fields]
    return Behaviours().of(pod, pod["spec"]["containers"][0])


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry["images"][0])
def test_entry_says_where_its_facts_are_documented(entry: dict[str, Any]) -> None:
    assert entry["documented"]
    for address in entry["documented"]:
        parts = urlsplit(address)
        assert parts.scheme == "https"
        assert "." in parts.netloc
        assert len(parts.path) > 1 or parts.netloc == "httpbin.org"


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry["images"][0])
def test_every_value_of_an_entry_can_be_read(entry: dict[str, Any]) -> None:
    tag = entry.get("tags", "latest").replace("*", "1")
    line = entry.get("args", "").replace("*", " 1 ").split()
    container: Any = {"name": "main", "image": f"{entry['images'][0]}:{tag}", "args": line}
    facts = images.facts_of(container["image"])
    assert facts is not None
    fields = {name for name, _, source in facts.fields(container, ())}
    expected = {images.python_name(name) for name in entry if name in images.FIELDS}
    assert expected <= fields


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("busybox", ("sh",)),
        ("docker.io/library/busybox:1.36", ("sh",)),
        ("k8s.gcr.io/busybox", ("sh",)),
        ("registry.k8s.io/e2e-test-images/busybox:1.29-4", ("sh",)),
        ("nginx:1.27", ("nginx", "-g", "daemon off;")),
        ("redis:7@sha256:" + "0" * 64, ("redis-server",)),
        ("php:8-apache", ("apache2-foreground",)),
        ("php:8-fpm", ("php-fpm",)),
        ("php:8-cli", ("php", "-a")),
    ],
)
def test_image_without_command_runs_its_own(image: str, command: tuple[str, ...]) -> None:
    assert behaviour_of(image).command == command


@pytest.mark.parametrize("image", ["shop", "example.com/nginx", "nginx/nginx-prometheus-exporter"])
def test_image_that_is_not_in_the_table_is_not_known(image: str) -> None:
    behaviour = behaviour_of(image)
    assert not behaviour.is_known
    assert behaviour == Behaviour(sources={})


def test_tag_that_the_documentation_gets_wrong_cannot_be_pulled() -> None:
    assert behaviour_of("nginx:1.161").pull == "fails"
    assert behaviour_of("nginx:1.16.1").pull is None


@pytest.mark.parametrize(
    ("image", "variable"),
    [
        ("mysql:8.4", "MYSQL_ROOT_PASSWORD"),
        ("mariadb:11", "MARIADB_ROOT_PASSWORD"),
        ("postgres:17", "POSTGRES_PASSWORD"),
    ],
)
def test_database_without_password_ends_with_its_message(image: str, variable: str) -> None:
    behaviour = behaviour_of(image)
    assert behaviour.exit_code == 1
    assert behaviour.runs_for == Length(0.0, 0.0)
    assert "password" in str(behaviour.log)
    running = behaviour_of(image, env=[{"name": variable, "value": "secret"}])
    assert running.exit_code is None
    assert running.runs_for is None
    assert running.listens
    shell = behaviour_of(image, command=["sh", "-c", "sleep 5"])
    assert shell.exit_code is None
    assert shell.listens is None


def test_variable_of_a_config_map_counts_for_an_image() -> None:
    pod: Any = {"metadata": {"name": "db", "namespace": "default"}, "spec": {}}
    container = {
        "name": "main",
        "image": "postgres",
        "envFrom": [{"prefix": "POSTGRES_", "secretRef": {"name": "db"}}],
    }
    pod["spec"]["containers"] = [container]
    secret = {"metadata": {"name": "db"}, "data": {"PASSWORD": "c2VjcmV0"}}
    known = Behaviours(find=lambda resource, namespace, name: secret)
    assert known.of(pod, pod["spec"]["containers"][0]).exit_code is None
    without = Behaviours()
    assert without.of(pod, pod["spec"]["containers"][0]).exit_code == 1


@pytest.mark.parametrize(
    ("args", "memory"),
    [
        (["--vm", "1", "--vm-bytes", "150M", "--vm-hang", "1"], 150 * 2**20),
        (["--vm", "2", "--vm-bytes", "1G"], 2 * 2**30),
        (["--vm", "1"], 256 * 2**20),
        (["--cpu", "2"], None),
    ],
)
def test_stress_uses_the_memory_of_its_arguments(args: list[str], memory: int | None) -> None:
    assert behaviour_of("polinux/stress", command=["stress"], args=args).memory == memory


def test_flags_choose_ports_and_answers() -> None:
    echo = behaviour_of("hashicorp/http-echo", args=["-text=hello there", "-listen=:8080"])
    assert echo.listens == (8080,)
    assert body(echo, "/any") == "hello there\n"
    app = behaviour_of("gcr.io/google-samples/hello-app:2.0")
    assert app.listens == (8080,)
    assert body(app, "/") == "Hello, world!\nVersion: 2.0.0\nHostname: $(HOSTNAME)\n"
    other = behaviour_of(
        "gcr.io/google-samples/hello-app:1.0", env=[{"name": "PORT", "value": "80"}]
    )
    assert other.listens == (80,)


def body(behaviour: Behaviour, path: str) -> str | None:
    schedule = schedule_of(behaviour, path)
    assert schedule is not None
    return schedule.at(0.0).body


def test_agnhost_does_what_its_subcommand_says() -> None:
    image = "registry.k8s.io/e2e-test-images/agnhost:2.53"
    assert behaviour_of(image).command == ("pause",)
    assert behaviour_of(image).listens == ()
    assert behaviour_of(image).log == "Paused\nSignals registered\n"
    assert behaviour_of(image, command=["sleep", "5"]).log is None
    server = behaviour_of(image, args=["netexec", "--http-port=80"])
    assert server.listens == (80,)
    assert server.entrypoint == ("/agnhost",)
    assert body(server, "/hostname") == "$(HOSTNAME)"
    assert behaviour_of(image, command=["/agnhost", "serve-hostname"]).listens == (9376,)
    health = schedule_of(behaviour_of(image, args=["liveness"]), "/healthz")
    assert health is not None
    assert [health.at(seconds).status for seconds in (9, 11)] == [200, 500]
    variables = [{"name": f"SERVE_PORT_{port}", "value": "foo"} for port in (80, 8080)]
    assert behaviour_of(image, args=["porter"], env=variables).listens == (80, 8080)
    assert behaviour_of(image, args=["connect", "a:80"]).runs_for == Length(0.0, 0.0)


def test_options_go_to_the_program_of_an_entrypoint_that_runs_its_arguments() -> None:
    assert behaviour_of("redis", args=["--port", "6380"]).entrypoint == ("redis-server",)
    assert behaviour_of("redis", args=["--port", "6380"]).listens == (6380,)
    assert behaviour_of("redis", args=["sh", "-c", "sleep 1"]).entrypoint is None
    assert behaviour_of("redis", args=["sh", "-c", "sleep 1"]).listens is None


def test_interpreter_without_input_ends_and_with_a_program_does_not() -> None:
    assert behaviour_of("python:3").runs_for == Length(0.0, 0.0)
    assert behaviour_of("python:3", stdin=True).runs_for is None
    assert behaviour_of("python:3", command=["python3", "-m", "http.server"]).runs_for is None


def test_web_server_gives_the_files_of_its_folder() -> None:
    behaviour = behaviour_of("nginx")
    assert behaviour.serves == "/usr/share/nginx/html"
    assert "Welcome to nginx!" in behaviour.files["/usr/share/nginx/html/index.html"]


def test_script_that_writes_the_name_of_a_program_does_not_run_it() -> None:
    script = "echo [mysqld] > /mnt/conf.d/server-id.cnf"
    container = {"command": ["bash", "-c", script]}
    assert behaviour_of("mysql:5.7", **container).listens is None
    assert behaviour_of("mysql:5.7", command=["sh", "-c", "exec mysqld"]).listens == (3306, 33060)


@pytest.mark.parametrize(
    ("image", "pull"),
    [
        ("nginx:invalid-tag", "fails"),
        ("nginx:no-such-tag", "fails"),
        ("docker.io/library/redis:7-typo", "fails"),
        ("nginx:v1", "fails"),
        ("nginx:1.27-alpine3.20-perl", None),
        ("nginx:99.9", None),
        ("debian:bookworm-20240904-slim", None),
        ("python:3.9-slim-buster", None),
        ("busybox", None),
        ("registry.example.com/nginx:invalid-tag", None),
        ("bitnami/nginx:no-such-tag", None),
    ],
)
def test_tag_with_a_word_that_no_tag_of_an_official_image_has_cannot_be_pulled(
    image: str, pull: str | None
) -> None:
    assert behaviour_of(image).pull == pull


def test_words_of_tags_are_those_of_official_images_in_the_table() -> None:
    names = {name for entry in TABLE for name in entry["images"] if "/" not in name}
    assert names.issuperset(images._tag_words())
