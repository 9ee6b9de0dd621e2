"""Challenges for programs: episodes, rewards, what is refused, how fast it is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kubepy.demo import ChallengeEnvironment, environment
from kubepy.demo.grading import BROKEN, HOLDS
from tests.demo.test_scenarios import WHOLE

# Half of what a core does on its own: tests share it.
EPISODES_A_MINUTE = 500


@pytest.fixture
def size(tmp_path: Path) -> ChallengeEnvironment:
    path = tmp_path / "size.yaml"
    path.write_text(WHOLE)
    return ChallengeEnvironment(path=path, most_steps=4)


def test_episode_ends_with_the_repair(size: ChallengeEnvironment) -> None:
    story, information = size.reset(3)
    assert story == size.scenario.story
    assert information == {"name": "size", "seed": 3, "title": "A size that is wrong"}
    output, reward, repaired, truncated, information = size.step("kubectl get deployments -A")
    assert output.splitlines()[0].split()[:3] == ["NAMESPACE", "NAME", "READY"]
    assert (reward, repaired, truncated, information["status"]) == (0.0, False, False, 0)
    [line] = [step.text for step in size.scenario.solution]
    output, reward, repaired, truncated, information = size.step(line)
    assert output == "deployment.apps/web scaled\n"
    assert (reward, repaired, truncated) == (1.0, True, False)
    assert information["grade"].names(HOLDS) == ("large enough", "there")


def test_wrong_repair_goes_on_and_can_be_put_right(size: ChallengeEnvironment) -> None:
    size.reset(1)
    namespace = size.scenario.mistakes[0].steps[0].text.split()[-1]
    _, reward, repaired, _, information = size.step(f"delete deployment/web -n {namespace}")
    assert (reward, repaired) == (0.0, False)
    assert information["grade"].broken == ("there",)
    states = [standing.state for standing in information["grade"].standings]
    assert states == [HOLDS, BROKEN]  # there is no Deployment that is too small
    *_, repaired, _, _ = size.step(
        f"create deployment web -n {namespace} --image=nginx --replicas=4"
    )
    assert repaired == (size.grade().standings[0].state == HOLDS)
    assert not size.grade().broken


def test_episodes_do_not_see_each_other(size: ChallengeEnvironment) -> None:
    size.reset(1)
    size.step("kubectl create configmap mine")
    before = size.cluster
    size.reset(1)
    assert before.client.list("configmaps")[-1]["metadata"]["name"] == "mine"
    names = [found["metadata"]["name"] for found in size.cluster.client.list("configmaps")]
    assert "mine" not in names


def test_same_seed_is_same_episode(size: ChallengeEnvironment) -> None:
    size.reset(5)
    first = size.step("kubectl get pods -A")
    size.reset(6)
    size.reset(5)
    assert size.step("kubectl get pods -A") == first


def test_reset_without_seed_takes_the_next_one(size: ChallengeEnvironment) -> None:
    assert size.reset(7)[1]["seed"] == 7
    assert size.reset()[1]["seed"] == 8


def test_episode_is_truncated(size: ChallengeEnvironment) -> None:
    size.reset(1)
    truncated = [size.step("kubectl get pods")[3] for _ in range(4)]
    assert truncated == [False, False, False, True]
    size.reset(1)
    output, _, _, is_over, information = size.step("kubepy clock advance 60d")
    assert (output, is_over) == ("error: the time of the episode is over\n", True)
    assert information["status"] == 1


def test_command_without_an_end_is_undone(
    size: ChallengeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "LONGEST_STEP", 1.0)
    size.reset(1)
    size.step("kubectl run box --image=busybox -- sleep 1000000")
    size.step("kubectl wait pod/box --for=condition=Ready")
    moment = size.cluster.now
    loop = "while true; do sleep 1; done"
    output, _, repaired, is_over, _ = size.step(f"kubectl exec box -- sh -c '{loop}'")
    assert output == "error: no end after 1s of computing\n"
    assert (repaired, is_over) == (False, True)
    assert size.cluster.now == moment
    assert size.step("kubectl get pod box -o name")[0] == "pod/box\n"


@pytest.mark.parametrize(
    "command",
    [
        "kubectl apply -f /etc/passwd",
        "kubectl cp web-0:/etc/hosts /tmp/hosts",
        "kubectl edit deployment/web",
        "kubectl get pods -w",
        "kubepy serve",
        "kubepy demo",
        "kubepy fork /tmp/elsewhere",
        "kubectl get pods --kubeconfig=/root/.kube/config",
        "kubectl get pods | grep web",
        "nothing",
        "kubectl get 'pods",
        "",
    ],
)
def test_command_that_concerns_the_machine_is_refused(
    size: ChallengeEnvironment, command: str
) -> None:
    size.reset(1)
    output, reward, repaired, _, information = size.step(command)
    assert output.startswith("error: ")
    assert output.count("\n") == 1
    assert (information["status"], reward, repaired) == (1, 0.0, False)


def test_manifest_comes_by_standard_input(size: ChallengeEnvironment) -> None:
    size.reset(1)
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: given}\n"
    output, *_ = size.step("kubectl apply -f -", manifest)
    assert output == "configmap/given created\n"


def test_environment_is_of_one_challenge() -> None:
    with pytest.raises(ValueError, match="name a challenge, or the path of a file"):
        ChallengeEnvironment()
    with pytest.raises(ValueError, match="most_steps=0: must be at least 1"):
        ChallengeEnvironment("quota", most_steps=0)
    with pytest.raises(RuntimeError, match="reset begins an episode"):
        ChallengeEnvironment("quota").step("get pods")


def test_judging_changes_nothing(size: ChallengeEnvironment) -> None:
    size.reset(1)
    moment, pods = size.cluster.now, size.cluster.client.list("pods", namespace=None)
    size.grade()
    assert size.cluster.now == moment
    assert size.cluster.client.list("pods", namespace=None) == pods


def test_episodes_take_milliseconds() -> None:
    episodes = ChallengeEnvironment("configkey")
    episodes.reset(1)
    [repair] = episodes.scenario.solution
    count = 20
    start = time.process_time()
    for _ in range(count):
        episodes.reset(1)
        episodes.step("kubectl get pods -A")
        episodes.step("kubectl get events -A")
        *_, repaired, _, _ = episodes.step(repair.text)
        assert repaired
        assert episodes.grade().repaired
    seconds = (time.process_time() - start) / count
    assert 60 / seconds > EPISODES_A_MINUTE
