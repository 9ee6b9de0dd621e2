"""Conflicts in single fields, and the other commands of git that merge: rebase, cherry-pick, a
criss-cross merge."""

from __future__ import annotations

import pytest

from tests.cli.git.conftest import Repository
from tests.cli.git.test_branches import check_cluster, check_no_lie, merge

AGENT = "namespaces/default/daemonsets.apps/agent"
SETTINGS = "namespaces/default/configmaps/settings"


def text_of(repository: Repository, path: str) -> str:
    return (repository.state / f"{path}.yaml").read_text()


def conflicts_in(text: str) -> list[tuple[list[str], list[str]]]:
    """Return both sides of every conflict, line by line."""
    found: list[tuple[list[str], list[str]]] = []
    side = -1
    for line in text.splitlines():
        if line.startswith("<<<<<<< "):
            found.append(([], []))
            side = 0
        elif line == "=======":
            side = 1
        elif line.startswith(">>>>>>> "):
            side = -1
        elif side >= 0:
            found[-1][side].append(line.strip())
    return found


def resolved(text: str, side: int) -> str:
    """Return the text with one side of every conflict."""
    kept, current = [], -1
    for line in text.splitlines(keepends=True):
        if line.startswith("<<<<<<< "):
            current = 0
        elif line.startswith("======="):
            current = 1
        elif line.startswith(">>>>>>> "):
            current = -1
        elif current in (-1, side):
            kept.append(line)
    return "".join(kept)


def branch_off(repository: Repository, ours: str, theirs: str) -> None:
    repository.branch("ours", lambda: repository.play(ours))
    repository.branch("theirs", lambda: repository.play(theirs))
    repository.git("checkout", "-q", "ours")


@pytest.mark.parametrize("side", [0, 1])
def test_field_changed_on_both_branches_is_left_with_markers_and_rest_merged(
    repository: Repository, side: int
) -> None:
    branch_off(
        repository,
        "set image ds/agent agent=agent:2 proxy=proxy:2\ncontroller --once",
        "set image ds/agent agent=agent:3\nlabel ds agent team=b\ncontroller --once",
    )
    done = repository.run_git("merge", "theirs")
    assert done.returncode == 1
    assert 'agent.yaml: spec.template.spec.containers[name="agent"].image' in done.stderr
    assert repository.git("diff", "--name-only", "--diff-filter=U") == f"state/{AGENT}.yaml\n"
    text = text_of(repository, AGENT)
    assert conflicts_in(text) == [(["image: agent:2"], ["image: agent:3"])]
    assert "proxy:2" in text
    assert "team: b" in text
    assert "has merge conflict markers" in repository.kubepy("fsck", status=1)
    assert "edit it" in repository.kubepy("git", "resolve", status=1)
    (repository.state / f"{AGENT}.yaml").write_text(resolved(text, side))
    repository.commit("merged")
    check_no_lie(repository)
    image = repository.kubepy(
        "get", "ds", "agent", "-o", "jsonpath={.spec.template.spec.containers[0].image}"
    )
    assert image == ("agent:2", "agent:3")[side]
    check_cluster(repository)


def test_entry_removed_on_one_branch_and_changed_on_other_is_in_conflict(
    repository: Repository,
) -> None:
    branch_off(
        repository,
        "set env ds/agent -c agent LEVEL-",
        "set env ds/agent -c agent LEVEL=debug OTHER=1",
    )
    assert repository.run_git("merge", "theirs").returncode == 1
    assert conflicts_in(text_of(repository, AGENT)) == [([], ["- name: LEVEL", "value: debug"])]


def test_text_of_several_lines_merges_line_by_line(repository: Repository) -> None:
    def edit(old: str, new: str) -> None:
        path = repository.state / f"{SETTINGS}.yaml"
        path.write_text(path.read_text().replace(old, new))

    repository.branch("ours", lambda: edit("one = 1", "one = 10"))
    repository.branch("theirs", lambda: edit("five = 5", "five = 50"))
    repository.branch("others", lambda: edit("five = 5", "five = 51"))
    merge(repository, "ours", "theirs")
    assert (
        repository.object(SETTINGS)["data"]["app.conf"]
        == "one = 10\ntwo = 2\nthree = 3\nfour = 4\nfive = 50\n"
    )
    assert repository.run_git("merge", "others").returncode == 1
    assert conflicts_in(text_of(repository, SETTINGS)) == [(["five = 50"], ["five = 51"])]


def test_object_removed_on_one_branch_and_changed_on_other_needs_decision(
    repository: Repository,
) -> None:
    branch_off(
        repository, "delete cm settings", 'patch cm settings -p \'{"data":{"level":"debug"}}\''
    )
    assert repository.run_git("merge", "theirs").returncode == 1
    assert "theirs changed it, ours removed it" in repository.kubepy("git", "resolve", status=1)


def test_object_removed_on_one_branch_and_changed_by_controllers_only_on_other_is_removed(
    repository: Repository,
) -> None:
    branch_off(
        repository,
        "delete deploy web\ncontroller --once",
        "drain node-1 --ignore-daemonsets --force\n"
        "cordon node-2\ncordon node-3\ndelete pod -l app=web\ncontroller --once",
    )
    merge(repository, "ours", "theirs")
    assert not (repository.state / "namespaces/default/deployments.apps/web.yaml").exists()
    repository.kubepy("controller", "--once")
    assert (
        repository.kubepy("get", "rs,pods", "-l", "app=web")
        == "No resources found in default namespace.\n"
    )


def test_applied_manifests_merge_with_what_was_applied_last(repository: Repository) -> None:
    manifest = text_of(repository, SETTINGS)

    def apply(old: str, new: str) -> None:
        repository.kubepy("apply", "-f", "-", stdin=manifest.replace(old, new))

    repository.branch("ours", lambda: apply("level: info", "level: debug"))
    repository.branch("theirs", lambda: apply("level: info", "level: info\n  colour: red"))
    merge(repository, "ours", "theirs")
    applied = repository.kubepy("apply", "view-last-applied", "cm", "settings", "-o", "json")
    assert '"level": "debug"' in applied
    assert '"colour": "red"' in applied


def test_objects_applied_server_side_on_both_branches_keep_both_managers(
    repository: Repository,
) -> None:
    def apply(manager: str, key: str) -> None:
        config = (
            f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{{key}: x}}\n"
        )
        repository.kubepy(
            "apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=config
        )

    repository.branch("ours", lambda: apply("red", "a"))
    repository.branch("theirs", lambda: apply("blue", "b"))
    merge(repository, "ours", "theirs")
    managers = "jsonpath={.metadata.managedFields[?(@.operation=='Apply')].manager}"
    assert sorted(
        repository.kubepy("get", "cm", "settings", "--show-managed-fields", "-o", managers).split()
    ) == ["blue", "red"]
    assert "no problems" in repository.kubepy("fsck")


@pytest.mark.parametrize("command", ["rebase", "cherry-pick"])
def test_commits_are_replayed_as_branches_merge(repository: Repository, command: str) -> None:
    branch_off(
        repository,
        "set image ds/agent agent=agent:2\ncontroller --once",
        "set env ds/agent -c agent COLOUR=red\ncontroller --once",
    )
    if command == "rebase":
        repository.git("checkout", "-q", "theirs")
    done = repository.run_git(command, "ours" if command == "rebase" else "theirs")
    assert done.returncode == 0, done.stdout + done.stderr
    check_no_lie(repository)
    container = repository.object(AGENT)["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], len(container["env"])) == ("agent:2", 2)
    check_cluster(repository)


def test_branches_with_two_common_ancestors_merge(repository: Repository) -> None:
    branch_off(
        repository, "set image ds/agent agent=agent:2", "set env ds/agent -c agent COLOUR=red"
    )
    repository.git("branch", "first", "ours")
    merge(repository, "ours", "theirs")
    repository.git("checkout", "-q", "theirs")
    merge(repository, "theirs", "first")
    repository.play("set image ds/agent agent=agent:1")
    repository.commit("back")
    repository.git("checkout", "-q", "ours")
    repository.play("set env ds/agent -c proxy SIZE=1")
    repository.commit("size")
    merge(repository, "ours", "theirs")
    containers = repository.object(AGENT)["spec"]["template"]["spec"]["containers"]
    assert [container["image"] for container in containers] == ["agent:1", "proxy:1"]
    check_cluster(repository)


def test_custom_resource_merges_by_lists_of_its_definition(repository: Repository) -> None:
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: fleets, kind: Fleet}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      ships: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name],
              items: {type: object, required: [name], properties: {name: {type: string}, crew: {type: integer}}}},
      ports: {type: array, items: {type: string}}}}}}}
"""  # noqa: E501
    fleet = (
        "apiVersion: example.org/v1\nkind: Fleet\nmetadata: {name: north}\n"
        "spec: {ships: [{name: a, crew: 1}], ports: [x]}\n"
    )
    repository.kubepy("apply", "-f", "-", stdin=definition)
    repository.kubepy("controller", "--once")
    repository.kubepy("create", "-f", "-", stdin=fleet)
    repository.commit("fleet")
    branch_off(
        repository,
        """patch fleet north --type=json -p '[{"op":"add","path":"/spec/ships/-","value":"""
        """{"name":"b"}},{"op":"add","path":"/spec/ports/-","value":"p"}]'""",
        """patch fleet north --type=json -p '[{"op":"add","path":"/spec/ships/0/crew","value":5},"""
        """{"op":"add","path":"/spec/ports/-","value":"q"}]'""",
    )
    assert repository.run_git("merge", "theirs").returncode == 1
    path = repository.state / "namespaces/default/fleets.example.org/north.yaml"
    assert conflicts_in(path.read_text()) == [(["- p"], ["- q"])]
    path.write_text(resolved(path.read_text(), 0))
    ships = repository.object("namespaces/default/fleets.example.org/north")["spec"]["ships"]
    assert ships == [{"name": "a", "crew": 5}, {"name": "b"}]


def test_edit_by_hand_without_new_generation_gets_one_by_merge(repository: Repository) -> None:
    path = repository.state / f"{AGENT}.yaml"
    repository.branch("ours", lambda: repository.play("label ds agent team=b"))
    repository.branch(
        "theirs",
        lambda: path.write_text(path.read_text().replace("image: agent:1", "image: agent:2")),
    )
    merge(repository, "ours", "theirs")
    assert repository.object(AGENT)["metadata"]["generation"] == 2
    check_no_lie(repository)
    check_cluster(repository)


def test_file_without_object_is_merged_by_lines(repository: Repository) -> None:
    path = repository.state / f"{SETTINGS}.yaml"
    text = path.read_text()
    repository.branch("ours", lambda: path.write_text(text.replace("level: info", "level: [")))
    repository.branch("theirs", lambda: path.write_text(text.replace("team: a", "team: b")))
    repository.git("checkout", "-q", "ours")
    done = repository.run_git("merge", "--no-edit", "theirs")
    assert done.returncode == 0
    assert "settings.yaml: merged line by line" in done.stderr
    assert path.read_text() == text.replace("level: info", "level: [").replace("team: a", "team: b")


def test_markers_have_size_and_labels_that_git_asks_for(repository: Repository) -> None:
    files = [repository.folder / name for name in ("base", "ours", "theirs")]
    for file, value in zip(files, "abc", strict=True):
        file.write_text(
            f"apiVersion: v1\ndata:\n  a: {value}\nkind: ConfigMap\nmetadata:\n  name: x\n"
        )
    names = [str(file) for file in files]
    repository.kubepy(
        "git", "merge-file", *names, "9", "x.yaml", "old", "HEAD", "feature", status=1
    )
    assert files[1].read_text().splitlines()[2:7] == [
        "<<<<<<<<< HEAD",
        "  a: b",
        "=========",
        "  a: c",
        ">>>>>>>>> feature",
    ]


@pytest.mark.parametrize("is_set_up", [True, False])
def test_merge_without_kubepy_is_by_lines_and_loses_nothing(
    repository: Repository, is_set_up: bool
) -> None:
    """Merge where kubepy was uninstalled, or in a clone in which setup never ran."""
    driver = repository.git("config", "merge.kubepy.driver").strip()
    repository.git("config", "--remove-section", "merge.kubepy")
    if is_set_up:
        repository.git("config", "merge.kubepy.driver", f"/nowhere{driver}")
    branch_off(repository, "set image ds/agent agent=agent:2", "set image ds/agent agent=agent:3")
    assert repository.run_git("merge", "theirs").returncode == 1
    assert (["image: agent:2"], ["image: agent:3"]) in conflicts_in(text_of(repository, AGENT))


def comment(repository: Repository) -> str:
    """Add comments to the config map's file; return its new text."""
    path = repository.state / f"{SETTINGS}.yaml"
    path.write_text(
        "# ours to keep\n" + path.read_text().replace("level: info", "level: info # not loud")
    )
    return path.read_text()


@pytest.mark.parametrize("ours", ["plain", "commented"])
def test_comments_of_one_branch_stay_beside_changes_of_other(
    repository: Repository, ours: str
) -> None:
    repository.branch("commented", lambda: comment(repository))
    repository.branch(
        "plain",
        lambda: repository.play(
            'patch cm settings -p \'{"data":{"level":"debug"}}\'\nlabel cm settings colour=red'
        ),
    )
    merge(repository, ours, "plain" if ours == "commented" else "commented")
    text = text_of(repository, SETTINGS)
    assert text.startswith("# ours to keep\n")
    assert "  level: debug # not loud\n" in text
    assert "    colour: red\n" in text


def test_conflict_in_commented_file_leaves_comments_outside_markers(repository: Repository) -> None:
    path = repository.state / f"{SETTINGS}.yaml"
    text = comment(repository)
    repository.commit("comments")  # on main
    repository.branch("ours", lambda: path.write_text(text.replace("level: info", "level: debug")))
    repository.branch(
        "theirs", lambda: path.write_text(text.replace("level: info", "level: error"))
    )
    repository.git("checkout", "-q", "ours")
    assert repository.run_git("merge", "theirs").returncode == 1
    assert conflicts_in(path.read_text()) == [
        (["level: debug # not loud"], ["level: error # not loud"])
    ]
    assert path.read_text().startswith("# ours to keep\n")
