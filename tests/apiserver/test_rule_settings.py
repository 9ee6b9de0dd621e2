"""``kubelet.rules`` and ``kubelet.containers`` in ``kubepy.yaml``: what they may say, and what is
an error."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.apiserver.rule_settings import (
    ExecAnswer,
    HttpReply,
    Length,
    parse_rules,
    pull_problem,
)
from kubepy.apiserver.settings import new_cluster_settings, parse_settings
from kubepy.controlplane.open import copy_cluster, make_cluster, open_cluster
from kubepy.runtime.checkpoint import identity
from kubepy.storage import FolderError, yaml

NAMED = {"name": "web"}


def rule(**fields: Any) -> list[dict[str, Any]]:
    return [{"match": NAMED, **fields}]


def values(**fields: Any) -> Any:
    return parse_rules(rule(**fields)).rules[0].values


def test_fields_of_a_rule_have_their_types() -> None:
    read = values(
        pull="3s..20s",
        readyAfter="2s..8s",
        stopsAfter=0,
        runsFor="1m",
        exitCode=3,
        memory="250Mi",
        cpu="80m",
        listens=[80, 8080],
        log="a\n",
        files={"/etc/motd": "hello"},
        env={"LANG": "C"},
        outcome="crash-loop*2, ready",
    )
    assert dict(read) == {
        "pull": Length(3.0, 20.0),
        "ready_after": Length(2.0, 8.0),
        "stops_after": Length(0.0, 0.0),
        "runs_for": Length(60.0, 60.0),
        "exit_code": 3,
        "memory": 250 * 2**20,
        "cpu": Decimal("0.08"),
        "listens": (80, 8080),
        "log": "a\n",
        "files": {"/etc/motd": "hello"},
        "env": {"LANG": "C"},
        "outcome": "crash-loop*2, ready",
    }


def test_what_never_happens_and_what_fails_is_read() -> None:
    read = values(
        pull="fails: pull access denied",
        start={"reason": "CreateContainerConfigError", "message": "no"},
        program="unknown",
        readyAfter="never",
        stopsAfter="never",
        exitReason="OOMKilled",
        exitMessage="out\n",
    )
    assert read == {
        "pull": "fails: pull access denied",
        "start": ("CreateContainerConfigError", "no"),
        "program": "unknown",
        "ready_after": "never",
        "stops_after": "never",
        "exit_reason": "OOMKilled",
        "exit_message": "out\n",
    }
    assert [pull_problem(pull) for pull in ("fails", "fails: a", Length(1, 2), None)] == [
        "",
        "a",
        None,
        None,
    ]


def test_http_answers_change_with_time() -> None:
    read = values(http={"/": 200, "/healthz": "200 for 10s, then 500 for 5s, then 204"})
    root, health = (schedule for _, schedule in read["http"])
    assert root.at(1e9) == HttpReply(200)
    assert root.next_change(0) is None
    assert [health.at(at).status for at in (0, 9.9, 10, 14.9, 15, 1e6)] == [
        200,
        200,
        500,
        500,
        204,
        204,
    ]
    assert [health.next_change(at) for at in (0, 10, 15)] == [10.0, 15.0, None]


def test_http_answer_has_status_body_and_headers() -> None:
    read = values(http={"/a": {"status": 503, "body": "no", "headers": {"Retry-After": "3"}}})
    reply = read["http"][0][1].at(0)
    assert reply == HttpReply(503, "no", (("Retry-After", "3"),))


def test_exec_answer_is_text_or_stdout_stderr_and_exit_code() -> None:
    read = values(exec={"psql *": "1\n", "false": {"stderr": "no\n", "exitCode": 1}})
    assert [(pattern.text, answer) for pattern, answer in read["exec"]] == [
        ("psql *", ExecAnswer("1\n")),
        ("false", ExecAnswer("", "no\n", 1)),
    ]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({}, "kubelet.rules: must be a list of rules"),
        (["x"], "kubelet.rules[0]: must be a map of match, pull"),
        ([{"pull": "fails"}], "kubelet.rules[0].match: is required"),
        ([{"match": {}, "cpu": 1}], "kubelet.rules[0].match: must have at least one of image"),
        (rule(), "kubelet.rules[0]: sets nothing"),
        (rule(pul="fails"), "kubelet.rules[0].pul: unknown field: must be one of match, pull"),
        (
            [{"match": {"imag": "a"}, "cpu": 1}],
            "kubelet.rules[0].match.imag: unknown field: must be one of image, namespace",
        ),
        (
            [{"match": {"image": "nginx[1"}, "cpu": 1}],
            'kubelet.rules[0].match.image: "nginx[1" is not a pattern: a [ is not closed',
        ),
        (
            [{"match": {"owner": "web"}, "cpu": 1}],
            'kubelet.rules[0].match.owner: "web" is not an owner such as Job/*',
        ),
        (
            [{"match": {"selector": "a in ("}, "cpu": 1}],
            "kubelet.rules[0].match.selector: unable to parse requirement",
        ),
        (
            [{"match": {"cel": "pod.spec +"}, "cpu": 1}],
            "kubelet.rules[0].match.cel: does not compile: ERROR: <input>:1:11: Syntax error",
        ),
        (
            [{"match": {"cel": "pods.size() > 1"}, "cpu": 1}],
            "kubelet.rules[0].match.cel: does not compile: ERROR: <input>:1:1: undeclared",
        ),
        (
            [{"match": {"cel": "'a'"}, "cpu": 1}],
            "kubelet.rules[0].match.cel: must be an expression that is true or false",
        ),
        (rule(pull="never"), 'kubelet.rules[0].pull: "never" is neither fails nor a duration'),
        (rule(program="known"), 'kubelet.rules[0].program: "known" is not unknown, which is all'),
        (rule(start="fails"), "kubelet.rules[0].start: must be a map of reason, message"),
        (rule(start={"message": "a"}), "kubelet.rules[0].start.reason: is required"),
        (rule(runsFor="never"), 'kubelet.rules[0].runsFor: "never" is not a duration'),
        (rule(exitReason=137), "kubelet.rules[0].exitReason: must be a string"),
        (rule(readyAfter="8s..2s"), 'kubelet.rules[0].readyAfter: "8s..2s" is not a duration'),
        (rule(readyAfter=5), 'kubelet.rules[0].readyAfter: "5" is not a duration such as 5s'),
        (rule(exitCode=256), 'kubelet.rules[0].exitCode: "256" is not a number from 0 to 255'),
        (rule(exitCode=True), 'kubelet.rules[0].exitCode: "true" is not a number from 0 to 255'),
        (rule(memory="lots"), 'kubelet.rules[0].memory: "lots" is not a quantity such as 250Mi'),
        (rule(cpu="-1"), 'kubelet.rules[0].cpu: "-1" is less than 0'),
        (rule(listens=80), "kubelet.rules[0].listens: must be a list of ports"),
        (rule(listens=[80, 0]), 'kubelet.rules[0].listens[1]: "0" is not a number from 1 to 65535'),
        (rule(http={"/": 99}), 'kubelet.rules[0].http[/]: "99" is not a number from 100 to 599'),
        (rule(http={"x": 200}), "kubelet.rules[0].http[x]: must be a path that begins with /"),
        (
            rule(http={"/": "200 for 10s"}),
            'kubelet.rules[0].http[/]: "200 for 10s" is neither a status such as 200 nor',
        ),
        (
            rule(http={"/": "200 for soon, then 500"}),
            'kubelet.rules[0].http[/]: "soon" is not a duration such as 10s',
        ),
        (
            rule(http={"/": {"code": 200}}),
            "kubelet.rules[0].http[/].code: unknown field: must be one of status, body, headers",
        ),
        (rule(log=["a"]), "kubelet.rules[0].log: must be a string"),
        (rule(files={"motd": ""}), "kubelet.rules[0].files[motd]: must be the absolute path"),
        (rule(env={"A": 1}), "kubelet.rules[0].env[A]: must be a string"),
        (rule(env={"A=B": "1"}), "kubelet.rules[0].env[A=B]: the name of a variable has no ="),
        (
            rule(exec={"ls": {"code": 1}}),
            "kubelet.rules[0].exec[ls].code: unknown field: must be one of stdout, stderr",
        ),
        (rule(outcome="fine"), 'kubelet.rules[0].outcome: Outcome "fine" is not known'),
        (
            rule(outcome="ready, crash-loop"),
            'kubelet.rules[0].outcome: "ready, crash-loop": only crash-loop',
        ),
    ],
)
def test_wrong_rule_is_an_error_that_names_its_field(rules: Any, message: str) -> None:
    with pytest.raises(FolderError) as caught:
        parse_settings({"kubelet": {"rules": rules}})
    assert str(caught.value).startswith(f"kubepy.yaml: {message}")
    assert "\n" not in str(caught.value)


# --- files ----------------------------------------------------------------------------------------


def test_rules_of_a_file_are_those_of_the_list(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("- {match: {image: 'nginx*'}, listens: [80]}\n")
    (tmp_path / "with-word.yaml").write_text(
        "rules:\n- {match: {image: 'nginx*'}, listens: [80]}\n"
    )
    for name in ("rules.yaml", "with-word.yaml"):
        rules = parse_rules(name, str(tmp_path)).rules
        assert [dict(rule.values) for rule in rules] == [{"listens": (80,)}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {match: {image: a}, listen: [80]}\n", "rules.yaml[0].listen: unknown field"),
        ("rules:\n- {match: {image: a}, cpu: x}\n", "rules.yaml: rules[0].cpu: "),
        ("- {\n", "rules.yaml: "),
        ("- {match: {image: a}, cpu: 1, cpu: 2}\n", "rules.yaml: "),
        ("[]\n---\n[]\n", "rules.yaml: must be one document with rules, not 2"),
        ("a: b\n", "rules.yaml: must be a list of rules"),
    ],
)
def test_wrong_file_is_an_error_that_names_it(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "rules.yaml").write_text(text)
    with pytest.raises(FolderError) as caught:
        parse_rules("rules.yaml", str(tmp_path))
    assert str(caught.value).startswith(message)


def test_file_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    outside = tmp_path / "rules.yaml"
    outside.write_text("[]\n")
    (folder / "link.yaml").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path)
    for name in ("../rules.yaml", str(outside), "link.yaml", "up/rules.yaml"):
        with pytest.raises(FolderError, match="is not inside of the state folder"):
            parse_rules(name, str(folder))
    with pytest.raises(FolderError, match='there is no file "none'):
        parse_rules("none.yaml", str(folder))
    with pytest.raises(FolderError, match="a file can be named in a state folder only"):
        parse_rules("rules.yaml")


def test_changed_rules_are_read_again_and_broken_ones_leave_the_rules(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with Cluster.create(folder):
        pass
    settings = folder / "kubepy.yaml"
    text = "formatVersion: 1\n"
    rules = open_cluster(folder).client.open_rules()

    def codes() -> list[int]:
        return [rule.values["exit_code"] for rule in rules.settings().rules]

    assert codes() == []
    replace(folder / "rules.yaml", "- {match: {image: a}, exitCode: 1}\n")
    replace(settings, f"{text}kubelet: {{rules: rules.yaml}}\n")
    assert codes() == [1]
    replace(folder / "rules.yaml", "- {match: {image: a}, exitCode: 22}\n")
    assert codes() == [22]
    replace(folder / "rules.yaml", "- {match: {image: a}, exitCod: 33}\n")
    assert codes() == [22]
    assert rules.problem.startswith("rules.yaml[0].exitCod: unknown field")
    replace(folder / "rules.yaml", "- {match: {image: a}, exitCode: 4}\n")
    assert codes() == [4]
    assert not rules.problem
    replace(settings, f"{text}kubelet: {{rules: [{{match: {{image: a}}, exitCode: 5}}]}}\n")
    assert codes() == [5]
    replace(settings, f"{text}kubelet: {{rules: other.yaml}}\n")
    assert codes() == [5]
    assert 'there is no file "other.yaml"' in rules.problem
    replace(settings, text)
    assert codes() == []
    assert not rules.problem


def replace(path: Path, text: str) -> None:
    """Write another file in place of one, as editors do."""
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


# --- containers -----------------------------------------------------------------------------------


def test_containers_are_modelled_or_simple() -> None:
    assert parse_settings({}).kubelet.containers == "simple"
    for word in ("modelled", "simple"):
        assert parse_settings({"kubelet": {"containers": word}}).kubelet.containers == word
    with pytest.raises(FolderError, match=r'kubelet.containers: "real" is not one of modelled'):
        parse_settings({"kubelet": {"containers": "real"}})


def test_new_cluster_gets_the_containers_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBEPY_CONTAINERS", raising=False)
    assert new_cluster_settings({"seed": 1}) == {
        "seed": 1,
        "kubelet": {"containers": "modelled"},
    }
    assert new_cluster_settings({"kubelet": {"readyAfter": "1s"}}) == {
        "kubelet": {"containers": "modelled", "readyAfter": "1s"}
    }
    given = {"kubelet": {"containers": "simple"}}
    assert new_cluster_settings(given) == given
    monkeypatch.setenv("KUBEPY_CONTAINERS", "simple")
    assert new_cluster_settings({}) == {"kubelet": {"containers": "simple"}}
    monkeypatch.setenv("KUBEPY_CONTAINERS", "real")
    with pytest.raises(FolderError, match='KUBEPY_CONTAINERS: "real" is not one of modelled'):
        new_cluster_settings({})


@pytest.mark.parametrize("variable", ["modelled", "simple"])
def test_containers_are_written_into_a_new_cluster(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEPY_CONTAINERS", variable)
    with Cluster.create(tmp_path / "made", settings={"kubelet": {"readyAfter": "1s"}}):
        pass
    open_cluster(tmp_path / "opened", create=True).close()
    for name in ("made", "opened"):
        written = parse_settings(
            {
                "kubelet": yaml.load_all((tmp_path / name / "kubepy.yaml").read_text())[0].object[
                    "kubelet"
                ]
            }
        )
        assert written.kubelet.containers == variable
    assert make_cluster("memory:").settings.kubelet.containers == variable
    temporary = Cluster.temporary()
    assert temporary._local is not None
    assert temporary._local.settings.kubelet.containers == variable


def test_existing_cluster_without_the_field_stays_simple(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster.create(tmp_path / "old").close()
    (tmp_path / "old" / "kubepy.yaml").write_text("formatVersion: 1\n")
    monkeypatch.setenv("KUBEPY_CONTAINERS", "modelled")
    assert open_cluster(tmp_path / "old").settings.kubelet.containers == "simple"


def test_file_of_rules_goes_with_a_copy_of_the_cluster(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "rules.yaml").write_text("- {match: {image: a}, exitCode: 1}\n")
    with Cluster.create(folder, settings={"kubelet": {"rules": "rules.yaml"}}):
        pass
    cluster = open_cluster(folder)
    fork = cluster.fork()
    copy_cluster(cluster, tmp_path / "copy")
    copy_cluster(fork, tmp_path / "copy-of-fork")
    for place in ("copy", "copy-of-fork"):
        rules = open_cluster(tmp_path / place).settings.kubelet.rules
        assert rules is not None
        assert [dict(rule.values) for rule in rules.rules] == [{"exit_code": 1}]
    assert repr(fork.settings.kubelet.rules) == repr(cluster.settings.kubelet.rules)


def test_file_of_rules_is_no_misplaced_object(tmp_path: Path) -> None:
    Cluster.create(tmp_path / "state").close()
    for name in ("rules.yaml", "other.yaml"):
        (tmp_path / "state" / name).write_text("[]\n")
    settings = tmp_path / "state" / "kubepy.yaml"
    settings.write_text("formatVersion: 1\nkubelet: {rules: ./rules.yaml}\n")
    worktree = open_cluster(tmp_path / "state").worktree
    assert worktree is not None
    assert [problem.path for problem in worktree.problems()] == ["other.yaml"]


def test_controllers_look_at_everything_again_after_a_change_of_rules() -> None:
    settings = [
        parse_settings({"kubelet": kubelet})
        for kubelet in (
            {},
            {"containers": "modelled"},
            {"rules": rule(exitCode=1)},
            {"rules": rule(exitCode=2)},
        )
    ]
    assert len({identity(("kubelet",), entry) for entry in settings}) == 4
    assert identity(("kubelet",), settings[2]) == identity(
        ("kubelet",), parse_settings({"kubelet": {"rules": rule(exitCode=1)}})
    )
