"""The files of challenges: what is read, what is drawn, and what is refused, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubepy.demo.drawing import draw, draw_one, fill, parse_draws
from kubepy.demo.preparation import prepare
from kubepy.demo.scenarios import parse_scenario, read_scenario, read_shipped
from kubepy.demo.verification import verify
from kubepy.storage import FolderError

WHOLE = """
title: A size that is wrong
story: web in namespace ${namespace} is too small.
draw:
  namespace: [shop, store]
  replicas: 2..4
setup:
- kubectl create namespace ${namespace}
- kubectl create deployment web -n ${namespace} --image=nginx --replicas=1
- advance: 1m
within: 2m
checks:
- name: large enough
  eventually: deployments.all(d, d.status.availableReplicas == ${replicas})
- name: there
  always: deployments.exists(d, d.metadata.name == 'web')
hints: [scale it]
solution: ["kubectl scale deployment/web -n ${namespace} --replicas=${replicas}"]
mistakes:
- steps: ["kubectl delete deployment/web -n ${namespace}"]
  breaks: there
"""


def message_of(text: str) -> str:
    with pytest.raises(FolderError) as caught:
        parse_scenario("size", "size.yaml", text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("size.yaml: ")
    return message.removeprefix("size.yaml: ")


def test_whole_file_is_read_and_verified() -> None:
    file = parse_scenario("size", "size.yaml", WHOLE)
    scenario = file.drawn(1)
    assert scenario.title == "A size that is wrong"
    assert [goal.must_stay for goal in scenario.goals] == [False, True]
    assert scenario.within == 120
    assert verify(file, range(3)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: A size that is wrong", "", "title: is required"),
        ("hints: [scale it]", "hint: [scale it]", "hint: unknown field: must be one of"),
        ("replicas: 2..4", "replicas: 4..2", 'draw.replicas: "4..2": 4 is more than 2'),
        ("replicas: 2..4", "replicas: many", 'draw.replicas: "many" is not a range such as'),
        ("replicas: 2..4", "replicas: []", "draw.replicas: must be a list with at least one"),
        ("replicas: 2..4", "replicas: [1.5]", 'draw.replicas[0]: "1.5" is no text or whole'),
        ("replicas: 2..4", "Replicas: 2..4", "draw.Replicas: is no name"),
        ("replicas: 2..4", "began: 2..4", "draw.began: is the time at which"),
        ("draw:", "draw: 5\nothers:", "draw: must be a map of names to lists"),
        ("too small", "${size}", "story: ${size} is not drawn"),
        ("advance: 1m", "advance: soon", 'setup[2].advance: "soon" is not a duration such as'),
        ("advance: 1m", "wait: 1m", "setup[2].wait: unknown field: must be one of manifests"),
        ("advance: 1m", "{advance: 1m, manifests: x}", "setup[2]: must be a command line, or"),
        ("within: 2m", "within: -2m", 'within: "-2m" is not a duration such as 20m'),
        ("within: 2m", "nodes: many", 'nodes: "many" is not a number from 0 to 50'),
        ("within: 2m", "settings: {seed: 1}", "settings.seed: kubepy sets it"),
        ("within: 2m", "settings: []", "settings: must be a map of settings"),
        ("eventually: ", "eventualy: ", "checks[0].eventualy: unknown field"),
        (".availableReplicas == ", ".availableReplicas = ", "checks[0].eventually: does not"),
        ("eventually: ", "always: ", "checks: one at least must be eventually or succeeds"),
        ("name: there", "name: large enough", 'checks[1].name: "large enough" is there twice'),
        ("breaks: there", "breaks: large enough", 'mistakes[0].breaks: "large enough" is no check'),
        ("  breaks: there", "", "mistakes[0].breaks: is required"),
        ("scale it]", "scale it", "error converting YAML to JSON: yaml: line 17: did not find"),
        ("'web')", "'web'", "checks[1].always: does not compile"),
        ("solution: [", 'solution: ["kubectl \'get", ', "solution[0]: cannot read "),
        ("advance: 1m", "kubepy serve", "setup[2]: serve: it opens a port"),
        ("advance: 1m", "kubectl apply -f /etc/passwd", "setup[2]: apply --filename="),
        ("eventually: ", "succeeds: kubepy fork x #", "checks[0].succeeds: fork: it makes or"),
    ],
)
def test_wrong_file_is_refused_by_its_field(old: str, new: str, message: str) -> None:
    assert old in WHOLE
    assert message_of(WHOLE.replace(old, new, 1)).startswith(message)


def test_check_by_command_has_one_kind() -> None:
    both = "- {name: x, succeeds: kubectl get pods, fails: kubectl get pods}"
    text = WHOLE.replace("- name: there", f"{both}\n- name: there")
    assert message_of(text) == "checks[1]: must have only one of succeeds, fails"


@pytest.mark.parametrize("text", ["", "[]", "a", "a: 1\n---\nb: 2"])
def test_text_that_is_no_map_is_refused(text: str) -> None:
    assert message_of(text).startswith("must be ")


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"none\.yaml: No such file or directory"):
        read_scenario(str(tmp_path / "none.yaml"))
    (tmp_path / "Big Name.yaml").write_text(WHOLE)
    with pytest.raises(FolderError, match="the file's name names the challenge"):
        read_scenario(str(tmp_path / "Big Name.yaml"))
    (tmp_path / "x.yaml").write_bytes(b"\xff")
    with pytest.raises(FolderError, match=r"x\.yaml: not UTF-8"):
        read_scenario(str(tmp_path / "x.yaml"))
    with pytest.raises(FolderError, match="nothing: is no challenge: must be one of account, "):
        read_shipped("nothing")


def test_setup_that_fails_names_its_step_and_what_was_said() -> None:
    text = WHOLE.replace("namespace ${namespace}\n", "namespace default\n", 1)
    file = parse_scenario("size", "size.yaml", text)
    with pytest.raises(FolderError) as caught:
        prepare(file, 1)
    assert str(caught.value) == (
        'size.yaml: setup[0]: fails: Error from server (AlreadyExists): namespaces "default" '
        "already exists"
    )


def test_wrong_settings_are_named() -> None:
    file = parse_scenario("size", "size.yaml", WHOLE + "settings: {kubelet: {colour: red}}\n")
    with pytest.raises(FolderError, match=r"^size\.yaml: settings: kubelet\.colour: unknown"):
        prepare(file, 1)


def test_draws_follow_from_seed_and_name_alone() -> None:
    draws = parse_draws("draw", {"a": "1..9", "b": ["x-${a}", "y-${a}"]})
    values = draw("draw", draws, 5)
    assert values == draw("draw", draws, 5)
    assert values["b"][2:] == values["a"]
    assert draw("draw", {"a": draws["a"]}, 5)["a"] == values["a"]
    assert len({draw("draw", draws, seed)["a"] for seed in range(60)}) == 9
    assert {draw_one(["p", "q"], seed) for seed in range(20)} == {"p", "q"}


def test_places_are_filled_in_all_texts() -> None:
    value = {"list": ["${a} and $${a}", 3], "map": {"deep": "$a ${a}${a}"}, "none": None}
    filled = fill("f", value, {"a": "1"})
    assert filled == {"list": ["1 and ${a}", 3], "map": {"deep": "$a 11"}, "none": None}
    with pytest.raises(FolderError, match=r"f\.x\[0\]: \$\{b\} is not drawn"):
        fill("f", {"x": ["${b}"]}, {"a": "1"})


def test_verify_tells_what_is_wrong_with_a_challenge() -> None:
    def problems(old: str, new: str) -> str:
        assert old in WHOLE
        text = WHOLE.replace(old, new)
        return " | ".join(verify(parse_scenario("size", "size.yaml", text), [1]))

    assert "it is repaired from the beginning" in problems("== ${replicas}", "== 1")
    assert '"there" is broken from the beginning' in problems("== 'web'", "== 'api'")
    assert "the solution does not repair it" in problems("--replicas=${replicas}", "--replicas=9")
    untold = problems("kubectl delete deployment/web", "kubectl get deployment/web")
    assert 'mistakes[0] is not told: the check "there" still holds' in untold
