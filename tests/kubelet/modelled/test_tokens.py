"""The tokens in the volumes of pods, as servers and the pods' own programs see them."""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.apiserver.accountkeys import AccountKeys
from tests.kubelet.modelled.clusters import PodsCluster

Object = dict[str, Any]
TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
SERVER = "https://kubernetes.default.svc.cluster.local"
YEAR = 365 * 24 * 3600
RENEWED = 2940  # seconds after which a kubelet renews a token of an hour
SLEEPER = {"name": "c", "image": "busybox", "command": ["sleep", "1000000"]}


@pytest.fixture
def pods() -> Iterator[PodsCluster]:
    """A cluster whose pods do what their manifests say."""
    cluster = PodsCluster()
    yield cluster
    cluster.cluster.close()


def claims_of(token: str) -> Any:
    part = token.split(".")[1]
    return json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def token_volume(audience: str = "", **mount: Any) -> Object:
    """Return the fields of a pod with a token at ``/t``."""
    source = {"path": "token", "expirationSeconds": 3600, "audience": audience}
    volume = {"name": "t", "projected": {"sources": [{"serviceAccountToken": source}]}}
    container = {**SLEEPER, "volumeMounts": [{"name": "t", "mountPath": "/t", **mount}]}
    return {"volumes": [volume], "containers": [container]}


def read(pods: PodsCluster, path: str = TOKEN_FILE) -> str:
    return pods.run("exec", "p", "--", "cat", path)


def review(cluster: Cluster, token: str, *audiences: str) -> Object:
    """Return what a server says of a token."""
    wanted = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "metadata": {},
        "spec": {"token": token, "audiences": list(audiences)},
    }
    status: Object = cluster.client.create(wanted)["status"]
    return status


def test_server_accepts_the_token_of_a_pod_and_knows_the_pod(pods: PodsCluster) -> None:
    pods.create("p", SLEEPER)
    status = review(pods.cluster, read(pods))
    assert status["authenticated"] is True
    assert status["audiences"] == [SERVER]
    user = status["user"]
    assert user["username"] == "system:serviceaccount:default:default"
    assert "system:serviceaccounts:default" in user["groups"]
    pod, node = pods.pod("p"), pods.cluster.client.get("nodes", "node-1")
    extra = {name.partition("/")[2]: values for name, values in user["extra"].items()}
    assert extra.pop("credential-id")
    assert extra == {
        "pod-name": ["p"],
        "pod-uid": [pod["metadata"]["uid"]],
        "node-name": ["node-1"],
        "node-uid": [node["metadata"]["uid"]],
    }


def test_token_works_for_a_year_and_warns_after_its_hour(pods: PodsCluster) -> None:
    pods.create("p", SLEEPER)
    claims = claims_of(read(pods))
    assert claims["exp"] - claims["iat"] == YEAR
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607


def test_program_of_a_pod_reads_the_token_that_commands_read(pods: PodsCluster) -> None:
    script = f"cat {TOKEN_FILE}; echo; wc -c < {TOKEN_FILE}; sleep 10000"
    pods.create("p", {**SLEEPER, "command": ["sh", "-c", script]})
    token, size = pods.logs("p").split()
    assert token == read(pods)
    assert int(size) == len(token)


def test_token_stays_until_the_kubelet_renews_it(pods: PodsCluster) -> None:
    pods.create("p", SLEEPER)
    first = read(pods)
    pods.advance(RENEWED - 1)
    assert read(pods) == first
    pods.advance(1)
    second = read(pods)
    assert claims_of(second)["iat"] - claims_of(first)["iat"] == RENEWED
    assert claims_of(second)["jti"] != claims_of(first)["jti"]
    assert review(pods.cluster, first)["authenticated"]
    assert review(pods.cluster, second)["authenticated"]


def test_token_is_good_for_its_audience_until_it_expires(pods: PodsCluster) -> None:
    fields = token_volume("vault")
    pods.create("p", *fields["containers"], volumes=fields["volumes"])
    token = read(pods, "/t/token")
    assert "authenticated" not in review(pods.cluster, token)
    assert review(pods.cluster, token, "vault")["audiences"] == ["vault"]
    pods.advance(3600 + 61)
    assert review(pods.cluster, token, "vault")["error"].endswith("token has expired]")
    assert review(pods.cluster, read(pods, "/t/token"), "vault")["authenticated"]


def test_token_mounted_alone_is_not_renewed(pods: PodsCluster) -> None:
    fields = token_volume(mountPath="/t/token", subPath="token")
    pods.create("p", *fields["containers"], volumes=fields["volumes"])
    token = read(pods, "/t/token")
    pods.advance(2 * RENEWED)
    assert read(pods, "/t/token") == token


def test_token_is_invalid_without_its_pod(pods: PodsCluster) -> None:
    pods.create("p", SLEEPER)
    token = read(pods)
    pods.run("delete", "pod", "p", "--force")
    pods.advance(61)
    assert review(pods.cluster, token)["error"].endswith("token has been invalidated]")


def test_token_of_an_account_that_was_made_again_is_invalid(pods: PodsCluster) -> None:
    pods.run("create", "serviceaccount", "robot")
    pods.create("p", SLEEPER, serviceAccountName="robot")
    token = read(pods)
    assert review(pods.cluster, token)["authenticated"]
    pods.advance(10)
    pods.run("delete", "serviceaccount", "robot")
    assert "authenticated" not in review(pods.cluster, read(pods))
    pods.run("create", "serviceaccount", "robot")
    assert "authenticated" not in review(pods.cluster, token)
    assert "authenticated" not in review(pods.cluster, read(pods))
    pods.advance(RENEWED)
    assert review(pods.cluster, read(pods))["authenticated"]


def test_seed_decides_tokens() -> None:
    tokens = []
    for seed in (1, 1, 2):
        pods = PodsCluster(seed=seed)
        pods.create("p", SLEEPER)
        tokens.append(read(pods))
        pods.cluster.close()
    assert tokens[0] == tokens[1] != tokens[2]


def test_token_has_no_signature_without_the_package_that_signs(
    pods: PodsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods.create("p", SLEEPER)

    def made(keys: AccountKeys, say: object) -> bytes:
        raise ModuleNotFoundError("No module named 'cryptography'", name="cryptography")

    monkeypatch.setattr(AccountKeys, "made", made)
    token = read(pods)
    monkeypatch.undo()
    assert token.endswith(".")
    assert claims_of(token)["sub"] == "system:serviceaccount:default:default"
    assert "authenticated" not in review(pods.cluster, token)


# --- folders --------------------------------------------------------------------------------------


def test_fork_of_a_folder_reads_tokens_and_writes_nothing(tmp_path: Path) -> None:
    key = os.path.join(tmp_path, "state", ".kubepy", "sa.key")
    modelled = {"kubelet": {"containers": "modelled"}}
    with Cluster.create(tmp_path / "state", settings=modelled) as cluster:
        cluster.run(["run", "p", "--image=busybox", "--", "sleep", "100000"])
        cluster.settle()
        command = ["exec", "p", "--", "cat", TOKEN_FILE]
        with cluster.fork() as fork:
            token = fork.run(command).stdout
            assert review(fork, token)["authenticated"]
            assert not os.path.exists(key)
            assert "authenticated" not in review(cluster, token)
        token = cluster.run(command).stdout
        assert review(cluster, token)["authenticated"]
        assert os.path.exists(key)
        with cluster.fork() as fork:
            assert fork.run(command).stdout == token
            assert review(fork, token)["authenticated"]
