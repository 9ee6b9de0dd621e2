"""docs/rules.md: its examples can be read, name every field, and do what their titles say."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kubepy.apiserver.rule_settings import FIELDS, MATCH, Length, parse_rules
from kubepy.apiserver.settings import parse_settings
from kubepy.kubelet.behaviours import Behaviour, Behaviours, answer_to, schedule_of
from kubepy.storage import yaml

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
RECIPES = dict(re.findall(r"^### (.*?)\n\n```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def rules_in(example: str) -> Any:
    value = yaml.load_all(example)[0].object
    if isinstance(value, dict):
        return value["kubelet"]["rules"]
    return value


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_can_be_read(example: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("[]\n")
    rules = rules_in(example)
    settings = parse_settings({"kubelet": {"rules": rules}}, str(tmp_path))
    assert settings.kubelet.rules is not None
    assert len(settings.kubelet.rules.rules) == (0 if isinstance(rules, str) else len(rules))


def test_page_has_an_example_of_every_field_and_condition() -> None:
    rules = [rule for example in EXAMPLES for rule in rules_in(example) if isinstance(rule, dict)]
    fields = {field for rule in rules for field in rule}
    conditions = {condition for rule in rules for condition in rule["match"]}
    assert fields == {*FIELDS, "match"}
    assert conditions == set(MATCH)
    for name in (*FIELDS, *MATCH):
        assert f"`{name}`" in PAGE


def test_page_has_ten_recipes() -> None:
    assert len(RECIPES) == 10
    assert set(RECIPES) == set(SAID)


def behaviour_of(recipe: str, image: str, owner: str = "", **metadata: Any) -> Behaviour:
    kind, _, name = owner.partition("/")
    pod: Any = {
        "metadata": {"name": "pod-1", "namespace": "default", **metadata},
        "spec": {"nodeName": "node-2", "containers": [{"name": "main", "image": image}]},
    }
    if owner:
        pod["metadata"]["ownerReferences"] = [{"kind": kind, "name": name, "controller": True}]
    return Behaviours(parse_rules(rules_in(RECIPES[recipe]))).of_pod(pod)["main"]


def statuses(behaviour: Behaviour, path: str, *moments: float) -> list[int]:
    schedule = schedule_of(behaviour, path)
    assert schedule is not None
    return [schedule.at(moment).status for moment in moments]


# Of each recipe: what it says of a container, and whom it says nothing of.
SAID: dict[str, Any] = {
    "A slow pull": lambda recipe: (
        behaviour_of(recipe, "registry.example.com/a/b:1").pull == Length(20, 90)
        and behaviour_of(recipe, "other").pull is None
    ),
    "An image that cannot be pulled": lambda recipe: (
        behaviour_of(recipe, "example.com/shop:v2").pull == "fails"
        and behaviour_of(recipe, "shop:v2").pull == "fails"
        and behaviour_of(recipe, "shop:v1").pull is None
    ),
    "Flaky readiness": lambda recipe: (
        statuses(behaviour_of(recipe, "a", labels={"app": "web"}), "/ready", 0, 5, 35, 45)
        == [503, 200, 503, 200]
    ),
    "Memory over the limit": lambda recipe: (
        behaviour_of(recipe, "analysis:1", namespace="batch").memory == 3 * 2**30
        and behaviour_of(recipe, "analysis:1").memory is None
    ),
    "A server that answers 500 after ten seconds": lambda recipe: (
        statuses(behaviour_of(recipe, "api:1"), "/healthz", 9.9, 10) == [200, 500]
    ),
    "The pods of one node crash": lambda recipe: behaviour_of(recipe, "a").outcome == "crash-loop",
    "A Job that fails twice": lambda recipe: (
        behaviour_of(recipe, "a", "Job/migrate").outcome == "crash-loop*2, succeeded"
        and behaviour_of(recipe, "a", "Job/other").outcome is None
    ),
    "Usage for an autoscaler": lambda recipe: (
        behaviour_of(recipe, "a", "Deployment/web").cpu == Decimal("0.18")
    ),
    "A program's answer for exec": lambda recipe: (
        [
            answer_to(behaviour_of(recipe, "redis:7"), words).exit_code  # type: ignore[union-attr]
            for words in (["redis-cli", "ping"], ["redis-cli", "pong"])
        ]
        == [0, 1]
    ),
    "Logs": lambda recipe: (
        behaviour_of(recipe, "worker:1").log == "connected to the queue\nwaiting for work\n"
    ),
}


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_recipe_says_what_its_title_promises(recipe: str) -> None:
    assert SAID[recipe](recipe)
