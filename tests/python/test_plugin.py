"""The pytest plugin: fixture, marker, ini options, transcripts, updates, reports."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from kubepy.testing import transcripts
from tests.etcd import EtcdServer, fresh_prefix

pytest_plugins = ["pytester"]

PASSING = """
# A rollout.

$ kubectl create deployment web --image=nginx
deployment.apps/web created
$ settle
$ kubectl get deploy web
NAME   READY   UP-TO-DATE   AVAILABLE   AGE
web    1/1     1            1           0s
"""


@pytest.fixture(autouse=True)
def _narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("KUBEPY_STATE", raising=False)


def transcript(pytester: pytest.Pytester, text: str, name: str = "case") -> Path:
    path = pytester.path / f"{name}.kubepy.txt"
    path.write_text(textwrap.dedent(text).lstrip("\n"))
    return path


# --- the fixture ----------------------------------------------------------------------------------


def test_fixture_is_new_cluster_for_each_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import unittest
        import pytest
        from kubepy import Cluster

        @pytest.mark.parametrize("number", [1, 2])
        def test_function(kubepy: Cluster, number: int) -> None:
            assert kubepy.run("create deployment web --image=nginx")
            assert kubepy.settle()
            assert len(kubepy.client.list("pods")) == 1
            assert repr(kubepy) == "<kubepy.Cluster in memory, at 2026-01-01T00:00:00Z>"
            assert (kubepy.seed, len(kubepy.client.list("nodes"))) == (1, 1)

        @pytest.mark.kubepy(nodes=2)
        class TestCase(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def set_cluster(self, kubepy):
                self.kubepy = kubepy

            def test_method(self):
                self.assertEqual(len(self.kubepy.client.list("nodes")), 2)

        @pytest.mark.kubepy(nodes=2, seed=5)
        class TestMarkers:
            @pytest.mark.kubepy(nodes=3, clock="2027-01-01T00:00:00Z", folder=True, settings={"reconcile": "never"})
            def test_closest_marker_counts(self, kubepy, tmp_path):
                assert (kubepy.seed, len(kubepy.client.list("nodes"))) == (5, 3)
                assert kubepy.folder == str(tmp_path / "state")
                assert kubepy.now.year == 2027
                assert "reconcile: never" in (tmp_path / "state" / "kubepy.yaml").read_text()

            @pytest.mark.kubepy(clock="system", seed="random")
            def test_system(self, kubepy):
                assert kubepy.clock is None
                assert 0 <= kubepy.seed < 1_000_000
    """)  # noqa: E501
    pytester.runpytest().assert_outcomes(passed=5)


def test_ini_options_decide_about_clusters(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\nkubepy_nodes = 4\nkubepy_clock = 2030-05-05T05:05:05Z\nkubepy_seed = abc\n"
    )
    pytester.makepyfile("""
        def test_cluster(kubepy):
            assert (len(kubepy.client.list("nodes")), kubepy.seed) == (4, "abc")
            assert kubepy.now.isoformat() == "2030-05-05T05:05:05+00:00"
    """)
    pytester.runpytest().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("kubepy_nodes = many", "nodes=many: must be a number"),
        ("kubepy_clock = noon", "clock='noon': must be a time such as"),
    ],
)
def test_wrong_ini_option_is_named(pytester: pytest.Pytester, option: str, message: str) -> None:
    pytester.makeini(f"[pytest]\n{option}\n")
    pytester.makepyfile("def test_cluster(kubepy): pass")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"the cluster of this test cannot be made: {message}*"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nodes=[1]", "the cluster of this test cannot be made: nodes=*: must be a whole number"),
        (
            "clock=5",
            "the cluster of this test cannot be made: clock=5: must be a datetime, a string or "
            "None",
        ),
        (
            "settings='x'",
            "the cluster of this test cannot be made: settings='x': must be a dict or None",
        ),
        (
            "settings={'foo': 1}, folder=True",
            "the cluster of this test cannot be made: settings: foo: unknown setting*",
        ),
        ("folder='foo'", "wrong marker: folder='foo': must be True or False"),
    ],
)
def test_wrong_value_in_marker_is_named(
    pytester: pytest.Pytester, arguments: str, message: str
) -> None:
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.kubepy({arguments})
        def test_cluster(kubepy): pass
    """)
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message.replace("[", "[[]")])
    result.stdout.no_fnmatch_line("*During handling*")
    result.stdout.no_fnmatch_line("*kubepy/*.py:*")


@pytest.mark.parametrize("arguments", ["3", "node=3"])
def test_wrong_marker_is_refused(pytester: pytest.Pytester, arguments: str) -> None:
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.kubepy({arguments})
        def test_cluster(kubepy): pass
    """)
    result = pytester.runpytest("--strict-markers")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["wrong marker: must be kubepy(nodes=1, *"])


def test_random_seed_is_shown_and_repeats(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nkubepy_seed = random\n")
    pytester.makepyfile("def test_seed(kubepy): assert kubepy.seed == 'other'")
    result = pytester.runpytest()
    seed = re.search(r"kubepy: --kubepy-seed=(\d+)", result.stdout.str())
    assert seed
    command = (
        f"repeat with: pytest --kubepy-seed={seed[1]} "
        f"test_random_seed_is_shown_and_repeats.py::test_seed"
    )
    result.stdout.fnmatch_lines([f"time: 2026-01-01T00:00:00Z, seed: {seed[1]}", command])
    again = pytester.runpytest(f"--kubepy-seed={seed[1]}")
    again.stdout.fnmatch_lines([f"time: 2026-01-01T00:00:00Z, seed: {seed[1]}", command])


def test_seed_drawn_for_one_test_is_shown_and_repeats(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.kubepy(seed=None)
        def test_seed(kubepy): assert kubepy.seed == 'other'
    """)
    command = re.search(
        r"seed: (\d+)\n[^\0]*repeat with: pytest (--kubepy-seed=\1) (\S+)",
        pytester.runpytest().stdout.str(),
    )
    assert command
    pytester.runpytest(command[2], command[3]).stdout.fnmatch_lines([f"*, seed: {command[1]}"])


def test_repeat_command_has_options_and_path_from_working_directory(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]")
    pytester.mkdir("sub").joinpath("test_case.py").write_text(
        "def test_case(kubepy): assert False\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "test_case.py",
            "-o",
            "kubepy_nodes=4",
            "--kubepy-seed=a b",
        ],
        cwd=pytester.path / "sub",
        text=True,
        capture_output=True,
    )
    assert (
        "repeat with: pytest -o kubepy_nodes=4 '--kubepy-seed=a b' test_case.py::test_case"
        in done.stdout
    )
    assert "kubepy: --kubepy-seed='a b'" in done.stdout


def test_errors_show_the_test_and_not_the_inside_of_the_package(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_command(kubepy): kubepy.run("get deploy none", check=True)
        def test_object(kubepy): kubepy.client.get("deploy/none")
        def test_argument(kubepy): kubepy.client.get(5)
    """)
    result = pytester.runpytest()
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "*CommandError: kubepy get deploy none: exit status 1",
            "*NotFound: *",
            "*TypeError: kind=5: must be a string",
        ]
    )
    result.stdout.no_re_match_line(r".*/kubepy/\w+\.py:\d+|.*def call\(")
    assert "arguments.py" in pytester.runpytest("--full-trace").stdout.str()


def test_report_of_failing_fixture_shows_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.fixture
        def web(kubepy):
            kubepy.run("create cm seen", check=True)
            kubepy.run("get cm none", check=True)

        def test_web(web): pass
    """)
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*kubepy: the cluster*", "diff --git a/namespaces/default/configmaps/seen.yaml *"]
    )


def test_seed_is_one_for_all_workers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_seed(kubepy, number, request):
            with open("seeds", "a") as file:
                file.write(f"{kubepy.seed}\\n")
    """)
    pytester.runpytest_subprocess("-n2", "--kubepy-seed=random").assert_outcomes(passed=4)
    seeds = (pytester.path / "seeds").read_text().split()
    assert len(seeds) == 4
    assert len(set(seeds)) == 1


def test_plugin_can_be_turned_off(pytester: pytest.Pytester) -> None:
    transcript(pytester, "$ false\n")
    pytester.makepyfile("def test_cluster(kubepy): pass")
    result = pytester.runpytest("-p", "no:kubepy")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'kubepy' not found"])


def test_fixture_of_a_project_with_the_same_name_goes_first(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest\n\n@pytest.fixture\ndef kubepy(): return 'own'")
    pytester.makepyfile("def test_own(kubepy): assert kubepy == 'own'")
    pytester.runpytest().assert_outcomes(passed=1)


def test_project_that_does_not_use_plugin_imports_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_modules():
            assert sorted(name for name in sys.modules if name.partition(".")[0] == "kubepy") == [
                "kubepy", "kubepy.testing"]
    """)
    pytester.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)


# --- the report of a failure ----------------------------------------------------------------------


def test_report_shows_what_changed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.fixture
        def web(kubepy):
            kubepy.run("create cm old --from-literal=a=1", check=True)
            kubepy.run("create cm gone --from-literal=a=1", check=True)

        def test_web(kubepy):
            kubepy.run("create deployment web --image=nginx --replicas=2", check=True)
            kubepy.settle()
            kubepy.run("label node node-1 team=a", check=True)
            kubepy.advance("10m")
            assert kubepy.run("get cm nothing"), "no config map"
    """)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*kubepy: the cluster*",
            "time: 2026-01-01T00:00:00Z to 2026-01-01T00:10:00Z, seed: 1",
            "timeline:",
            "deployments.apps/web in default",
            "  web-*-* node-1 *AAAA",
            "  0s deployments.apps/web created",
            "A available",
            "",
            "changes since the test began: 4 created, 1 changed, 0 deleted",
            "diff --git a/cluster/nodes/node-1.yaml b/cluster/nodes/node-1.yaml",
            "--- a/cluster/nodes/node-1.yaml",
            "+++ b/cluster/nodes/node-1.yaml",
            "+    team: a",
            "diff --git a/namespaces/default/deployments.apps/web.yaml b/*",
            "new file mode 100644",
            "--- /dev/null",
            "+++ b/namespaces/default/deployments.apps/web.yaml",
            "+  replicas: 2",
            "+  readyReplicas: 2",
            "created by controllers:",
            "  default     pod/web-*-* * 1/1     Running   0          10m",
            "  default     replicaset.apps/web-* 2         2         2       10m",
            "repeat with: pytest test_report_shows_what_changed.py::test_web",
        ]
    )
    section = (
        result.stdout.str().partition("kubepy: the cluster")[2].partition("short test summary")[0]
    )
    assert not re.search("resourceVersion|managedFields|uid:|more lines", section)
    assert not re.search(
        "terminationMessagePath|revisionHistoryLimit|dnsPolicy|schedulerName", section
    )
    assert (
        max(len(line) for line in section.splitlines() if not line.startswith("diff --git")) <= 80
    )


def test_report_survives_closed_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_closed(kubepy):
            kubepy.close()
            assert kubepy.folder
    """)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["what changed cannot be shown: this cluster is closed"])


def test_long_reports_are_cut(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_many(kubepy):
            data = {f"key-{number}": "x" for number in range(100)}
            for number in range(60):
                kubepy.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"cm-{number:02d}"},
                                      "data": data})
            assert False
    """)  # noqa: E501
    lines = pytester.runpytest().stdout.lines
    assert "… 69 more lines" in lines
    assert "… and namespaces/default/configmaps/cm-59.yaml" in lines
    assert len(lines) < 600


# --- clusters in etcd -----------------------------------------------------------------------------


def keys_below(server: EtcdServer, prefix: str) -> list[bytes]:
    with closing(server.client()) as client:
        found = client.range(f"{prefix}/".encode(), f"{prefix}0".encode(), keys_only=True)
    return [kv.key for kv in found.kvs]


def test_fixture_in_etcd_is_new_cluster_for_each_test_and_removed(
    pytester: pytest.Pytester, etcd_server: EtcdServer
) -> None:
    prefix = fresh_prefix()
    pytester.makeini(f"[pytest]\nkubepy_state = {etcd_server.address(prefix)}\n")
    pytester.makepyfile(f"""
        import pytest
        from kubepy import Cluster

        @pytest.mark.parametrize("number", [1, 2])
        def test_function(kubepy: Cluster, number: int) -> None:
            assert repr(kubepy).startswith("<kubepy.Cluster 'etcd://127.0.0.1:{etcd_server.port}{prefix}/pytest-")
            assert kubepy.run("create deployment web --image=nginx")
            assert kubepy.settle()
            assert len(kubepy.client.list("pods")) == 1
            assert (kubepy.seed, kubepy.now.year) == (1, 2026)

        @pytest.mark.kubepy(nodes=3)
        def test_that_closes_its_cluster(kubepy):
            assert len(kubepy.client.list("nodes")) == 3
            kubepy.close()

        @pytest.mark.kubepy(folder=True)
        def test_folder(kubepy, tmp_path):
            assert kubepy.folder == str(tmp_path / "state")

        @pytest.mark.kubepy(state="memory:")
        def test_memory(kubepy):
            assert repr(kubepy).startswith("<kubepy.Cluster in memory")
    """)
    transcript(pytester, PASSING)
    pytester.runpytest().assert_outcomes(passed=6)
    assert keys_below(etcd_server, prefix) == []


def test_failing_test_in_etcd_shows_what_changed_and_how_to_repeat_it(
    pytester: pytest.Pytester, etcd_server: EtcdServer
) -> None:
    state = etcd_server.address(fresh_prefix())
    pytester.makepyfile("""
        def test_cluster(kubepy):
            kubepy.run("create configmap colours --from-literal=sky=blue", check=True)
            raise AssertionError
    """)
    result = pytester.runpytest(f"--kubepy-state={state}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*+  name: colours", f"repeat with: pytest --kubepy-state={state} *::test_cluster"]
    )
    assert keys_below(etcd_server, state.rpartition("/")[2]) == []


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            "etcd://127.0.0.1:1/a?timeout=300ms",
            "etcd at 127.0.0.1:1 cannot be reached: connection refused",
        ),
        ("etcd://127.0.0.1:1/a?timeout=soon", "*timeout=soon: seconds*"),
        ("state", "state='state': must be memory: or etcd://HOST:PORT/PREFIX"),
    ],
)
def test_state_that_cannot_be_used_is_one_line(
    pytester: pytest.Pytester, state: str, message: str
) -> None:
    pytester.makepyfile("def test_cluster(kubepy): pass")
    result = pytester.runpytest(f"--kubepy-state={state}")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"the cluster of this test cannot be made: {message}"])
    result.stdout.no_fnmatch_line("*During handling*")


# --- transcripts ----------------------------------------------------------------------------------


def test_transcripts_are_collected_as_tests(pytester: pytest.Pytester) -> None:
    transcript(pytester, PASSING, "good")
    transcript(pytester, PASSING.replace("1/1", "2/2"), "bad")
    transcript(pytester, "no transcript", "other").rename(pytester.path / "other.txt")
    pytester.runpytest().assert_outcomes(passed=1, failed=1)
    listed = pytester.runpytest("--collect-only", "-q").stdout
    listed.fnmatch_lines(["bad.kubepy.txt::bad", "good.kubepy.txt::good", "2 tests collected*"])
    pytester.runpytest("-k", "good").assert_outcomes(passed=1, deselected=1)
    pytester.runpytest("--lf").assert_outcomes(failed=1)
    pytester.runpytest("good.kubepy.txt").assert_outcomes(passed=1)


def test_failure_shows_place_and_lines(pytester: pytest.Pytester) -> None:
    transcript(
        pytester,
        """
        # Two commands of three are wrong.
        $ kubectl create cm a --from-literal=x=y
        configmap/b created
        $ kubectl get cm a -o name
        configmap/a
        $ kubectl get cm b
        configmap/b
    """,
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "case.kubepy.txt:2: $ kubectl create cm a --from-literal=x=y",
            "- configmap/b created",
            "+ configmap/a created",
            "case.kubepy.txt:6: $ kubectl get cm b",
            "- configmap/b",
            '+ ! Error from server (NotFound): configmaps "b" not found',
            "+ [[]1]",
            "2 of 3 commands printed something else (-: expected, +: printed)",
            "changes since the test began: 1 created, 0 changed, 0 deleted",
            "repeat with: pytest case.kubepy.txt::case",
        ],
        consecutive=False,
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"# only a comment\n", "1: there is no command ($ …)"),
        (b"", "1: there is no command ($ …)"),
        (
            b"# a\nkubectl get pods\n$ kubectl get pods\n",
            "2: a command ($ …) or a comment (# …) must come first",
        ),
        (b"# a\n\n$ kubectl get\nb\xe4r\n", "4: not UTF-8: byte 0xe4"),
        (
            b"# kubepy: nods=3\n$ true\n",
            "1: unknown setting 'nods=3': must be one of nodes=, clock=, seed=, bootstrap=, "
            "reconcile=, containers=, folder",
        ),
        (b"# kubepy: nodes='3\n$ true\n", "1: # kubepy: no closing quotation"),
        (b"# kubepy: nodes=x\n$ true\n", " nodes=x: must be a number"),
        (b"$ true\n-- a --\n-- a --\n", "3: the file a is there already"),
        (b"$ true\n-- ../a --\n", "2: the file ../a is outside the folder of the transcript"),
        (b"$ true\n-- /etc/a --\n", "2: the file /etc/a is outside the folder of the transcript"),
        (b"$ \n", "1: a command must follow the $"),
    ],
)
def test_broken_transcript_is_an_error_with_its_line(
    pytester: pytest.Pytester, content: bytes, message: str
) -> None:
    (pytester.path / "case.kubepy.txt").write_bytes(content)
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    assert f"case.kubepy.txt:{message}" in result.stdout.str()


def test_transcript_reads_files_and_settings(pytester: pytest.Pytester) -> None:
    transcript(
        pytester,
        """
        # kubepy: nodes=2 seed=7
        # kubepy: clock=2030-01-01T00:00:00Z
        $ kubectl get nodes --no-headers -o custom-columns=N:metadata.name,T:metadata.creationTimestamp
        node-1   2030-01-01T00:00:00Z
        node-2   2030-01-01T00:00:00Z
        $ kubectl apply -f sub/a.yaml
        configmap/a created
        $ cat sub/a.yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}

        # An empty line, then a comment.
        $ test -e state
        [1]
        -- sub/a.yaml --
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        -- empty --
    """,  # noqa: E501
    )
    transcript(
        pytester,
        """
        # kubepy: folder
        $ ls state
        cluster
        kubepy.yaml
        $ kubectl create cm a -o name
        configmap/a
        $ ls state/namespaces/default/configmaps
        a.yaml
        $ kubepy fsck | sed 's|.*/||'
        state: no problems
    """,
        "folder",
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=2)


def test_transcript_lines_are_those_of_a_shell(pytester: pytest.Pytester) -> None:
    transcript(
        pytester,
        r"""
        $ kubectl create cm a --from-literal=x=one >/dev/null && kubepy get cm a --no-headers | awk '{print $1, $2}'
        a 1
        $ for n in b c; do kubectl create cm $n -o name; done; kubectl get nothing || echo no
        configmap/b
        configmap/c
        no
        ! error: the server doesn't have a resource type "nothing"
        $ kubectl get cm a -o yaml | sed 's/one/two/' | kubectl replace -f - && kubectl get cm a -o 'jsonpath={.data.x}'
        configmap/a replaced
        two
        $ kubectl create -f - <<END
        > apiVersion: v1
        > kind: ConfigMap
        > metadata: {name: "$(kubectl get cm a -o 'jsonpath={.metadata.name}')-2"}
        > END
        configmap/a-2 created
        $ kubectl get cm -o name | while read name; do kubectl get "$name" -o jsonpath='{.metadata.name} '; done; echo
        a a-2 b c
        $ mkdir sub && cd sub && echo 'apiVersion: v1' > x.yaml && kubectl apply -f x.yaml
        ! error: error validating "x.yaml": error validating data: kind not set; if you choose to ignore ...
        [1]
        $ kubectl create -f <(echo '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}')
        configmap/d created
        $ GREETING=hello; echo "$GREETING $HOME" | sed "s|$PWD|here|"; exit 3
        hello here
        [3]
        $ kubectl get cm a -o 'jsonpath={.data.x}' "--namespace=default"
        two
        $ date -d @0 +%H
        00
        $ echo '$ kubectl'; echo '# no comment'; echo '\ x'; echo '-- a --'
        \$ kubectl
        \# no comment
        \ x
        \-- a --
    """,  # noqa: E501
    )
    result = pytester.runpytest()
    assert result.parseoutcomes() == {"passed": 1}, result.stdout.str()


def test_sleep_and_settle_move_the_clusters_time(pytester: pytest.Pytester) -> None:
    transcript(
        pytester,
        """
        $ kubectl create cronjob tick --image=nginx --schedule='*/10 * * * *' -- true
        cronjob.batch/tick created
        $ sleep 3000
        $ kubectl get jobs -o name | wc -l
        3
        $ sleep 10m; kubectl get jobs -o name | tail -1
        job.batch/tick-29453820
        $ settle 1h
        $ settle soon
        ! settle: time: invalid duration "soon"
        [2]
        $ sleep
        ! usage: sleep SECONDS
        [2]
    """,
    )
    result = pytester.runpytest()
    assert result.parseoutcomes() == {"passed": 1}, result.stdout.str()
    assert result.duration < 20


def test_placeholders_match_what_varies(pytester: pytest.Pytester) -> None:
    transcript(
        pytester,
        """
        # kubepy: seed=random clock=system
        $ kubectl create deployment web --image=nginx
        deployment.apps/web created
        $ kubectl rollout status deploy/web
        ...
        deployment "web" successfully rolled out
        $ kubectl get pods -o wide
        NAME   READY   STATUS   RESTARTS   AGE   IP   NODE   NOMINATED NODE   READINESS GATES
        web-<hash>-<rand>  1/1  Running  0  <age>  <ip>  node-...  <none>  <none>
        $ kubectl get deploy web -o yaml
        ...
          creationTimestamp: "<time>"
        ...
          uid: <uid>
        spec:
        ...
    """,
    )
    result = pytester.runpytest()
    assert result.parseoutcomes() == {"passed": 1}, result.stdout.str()


@pytest.mark.parametrize(
    "command", ["cat /dev/zero > /dev/null", "kubectl get pods -w", "kubectl get pods -w | cat"]
)
def test_transcript_that_hangs_is_stopped(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("kubepy.scripting.STEP_SECONDS", 1.0)
    transcript(pytester, f"$ true\n$ {command}\n")
    before = signal.getsignal(signal.SIGALRM)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"case.kubepy.txt:2: $ {command}", "no end within 1 s"])
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_commands_of_one_line_may_wait_for_each_other(pytester: pytest.Pytester) -> None:
    transcript(
        pytester,
        """
        $ kubectl apply -f <(kubectl create cm b --from-literal=x=y --dry-run=client -o yaml)
        configmap/b created
        $ kubectl create cm c --from-literal=x=y --dry-run=client -o yaml | kubectl apply -f /dev/stdin
        configmap/c created
        $ kubectl create cm d --from-file=k=<(kubectl get ns default -o name) && kubectl get cm d -o jsonpath={.data.k}
        configmap/d created
        namespace/default
        $ timeout 1 kubectl get cm -w -o name
        configmap/b
        configmap/c
        configmap/d
        [124]
        $ kubectl get cm d -w -o name & kubectl label cm d a=b >/dev/null; kill $!; kubectl get cm c -o name
        ...
        configmap/c
        $ kubectl get cm d -w -o name >out & sleep 0.5; kubectl get cm c -o name
        configmap/c
    """,  # noqa: E501
    )
    result = pytester.runpytest()
    assert result.parseoutcomes() == {"passed": 1}, result.stdout.str()
    assert result.duration < 30


def test_any_lines_are_no_errors(pytester: pytest.Pytester) -> None:
    transcript(pytester, "$ kubectl get deploy none\n...\n", "stderr")
    transcript(pytester, "$ exit 9\n...\n", "status")
    transcript(pytester, "$ kubectl get ns,deploy/none\n...\n! error: ...\n[1]\n", "named")
    transcript(pytester, "$ echo a; echo b; exit 9\n...\nb\n[9]\n", "right")
    pytester.runpytest().assert_outcomes(passed=2, failed=2)


# --- updates --------------------------------------------------------------------------------------


def test_update_changes_only_what_differs(pytester: pytest.Pytester) -> None:
    path = transcript(
        pytester,
        """
        # The head stays.

        $ kubectl create deployment web --image=nginx
        deployment.apps/web made

        # So does a comment.
        $ kubectl get deploy web --no-headers
        web   <age>

        $ kubectl rollout status deploy/web
        ...
        deployment "web" successfully rolled out
        $ kubectl get deploy
        NAME   READY   UP-TO-DATE   AVAILABLE   AGE
        web    ...
        api    ...
        $ kubectl get pods | tail -n +2 | cut -c1-4
        web-
        web-
        $ echo '$ not a command'; kubectl get cm nothing
        -- notes --
        stay
    """,
    )
    wanted = path.read_text()
    for old, new in (
        ("web made", "web created"),
        ("web   <age>", "web   1/1   1     1     0s"),
        ("api    ...\n", ""),
        ("web-\nweb-\n", "web-\n"),
        (
            "nothing\n",
            'nothing\n\\$ not a command\n! Error from server (NotFound): configmaps "nothing" '
            "not found\n[1]\n",
        ),
    ):
        wanted = wanted.replace(old, new)
    result = pytester.runpytest("--kubepy-update")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["kubepy: updated case.kubepy.txt"])
    assert path.read_text() == wanted
    before = path.stat().st_mtime_ns
    result = pytester.runpytest("--kubepy-update")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("kubepy: updated *")
    assert path.stat().st_mtime_ns == before
    pytester.runpytest().assert_outcomes(passed=1)


def test_transcript_survives_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, text: str, encoding: str) -> None:
        path.write_bytes(b"")
        raise OSError("no space left on device")

    path = tmp_path / "case.kubepy.txt"
    path.write_text("$ true\n")
    monkeypatch.setattr(Path, "write_text", write)
    with pytest.raises(OSError, match="no space"):
        transcripts.replace(path, "$ false\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["case.kubepy.txt"]
    assert path.read_text() == "$ true\n"


@pytest.mark.parametrize(
    ("expected", "printed", "kept"),
    [
        ("a b c", "a x c", " a,-b,+x, c"),
        ("a ... z", "a b c z", " a, ..., z"),
        ("a ...", "a", " a, ..."),
        ("... z", "a z b z", " ..., z"),
        ("a ... z", "a b y", " a,-...,-z,+b,+y"),
        ("a b", "", "-a,-b"),
        ("", "a", "+a"),
        ("<age> b", "5m c", " <age>,-b,+c"),
    ],
)
def test_lines_are_aligned(expected: str, printed: str, kept: str) -> None:
    aligned = transcripts.aligned(expected.split(), printed.split())
    assert sorted(mark + line for mark, line in aligned) == sorted(kept.split(","))
    assert [line for mark, line in aligned if mark != "+"] == expected.split()


# --- many tests -----------------------------------------------------------------------------------

MANY = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_cluster(kubepy, number):
    name = f"web-{{number}}"
    assert kubepy.client.list("deployments") == []
    kubepy.run(f"create deployment {{name}} --image=nginx --replicas={{1 + number % 3}}", check=True)
    assert kubepy.settle()
    assert [obj["metadata"]["name"] for obj in kubepy.client.list("deployments")] == [name]
    assert len(kubepy.client.list("pods")) == 1 + number % 3
    kubepy.run("config set-context --current --namespace=kube-system", check=True)
    assert kubepy.run("get pods").stderr == "No resources found in kube-system namespace.\\n"
"""  # noqa: E501


def test_many_tests_run_on_workers_without_crosstalk(pytester: pytest.Pytester) -> None:
    path = pytester.makepyfile(MANY.format(count=600))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider", str(path)],
        text=True,
        cwd=pytester.path,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "600 passed" in done.stdout
