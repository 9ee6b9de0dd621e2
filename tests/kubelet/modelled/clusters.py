"""A cluster in memory whose pods do what their manifests say, with time of its own."""

from __future__ import annotations

from typing import Any

from kubepy import Cluster

Object = dict[str, Any]


class PodsCluster:
    """A cluster, and what tests ask of the pods in it."""

    def __init__(self, rules: list[Object] | None = None, seed: int = 1) -> None:
        kubelet: Object = {"containers": "modelled"}
        if rules:
            kubelet["rules"] = rules
        self.cluster = Cluster.temporary(settings={"kubelet": kubelet}, seed=seed)

    def create(self, name: str, *containers: Object, **spec: Any) -> None:
        """Create a pod, and let what follows at once happen."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": list(containers), **spec},
        }
        self.cluster.client.create(pod, namespace="default")
        self.advance(0)

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        self.cluster.advance(seconds)

    def pod(self, name: str) -> Object:
        found: Object = self.cluster.client.get("pods", name, namespace="default")
        return found

    def status(self, name: str, container: str = "c") -> Object:
        """Return the status of a container."""
        status = self.pod(name)["status"]
        fields = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        entries = [entry for field in fields for entry in status.get(field) or ()]
        [entry] = [entry for entry in entries if entry["name"] == container]
        found: Object = entry
        return found

    def state(self, name: str, container: str = "c") -> Object:
        """Return the present state of a container: one of waiting, running, terminated."""
        found: Object = self.status(name, container)["state"]
        return found

    def shown(self, name: str) -> str:
        """Return what ``get pods`` shows of a pod: readiness, status and restarts."""
        line = self.run("get", "pod", name, "--no-headers").split()
        return " ".join(line[1:4])

    def run(self, *args: str) -> str:
        """Run a command, and return what it prints; it may fail."""
        result = self.cluster.run(list(args))
        return result.stdout + result.stderr

    def logs(self, name: str, *args: str) -> str:
        return self.run("logs", name, *args)

    def events(self, name: str) -> list[tuple[str, str, int]]:
        """Return reason, message and count of the kubelet's events about a pod, as they came."""
        events = self.cluster.client.list("events", namespace="default")
        own = [
            event
            for event in events
            if event["involvedObject"]["name"] == name
            and event["source"].get("component") == "kubelet"
        ]
        own.sort(key=lambda event: (event["firstTimestamp"], event["metadata"]["name"]))
        return [(event["reason"], event["message"], event["count"]) for event in own]

    def reasons(self, name: str) -> list[str]:
        """Return the reasons of the events, each once."""
        return list(dict.fromkeys(reason for reason, _, _ in self.events(name)))


def shell(script: str, **fields: Any) -> Object:
    """Return a container that runs a script."""
    return {"name": "c", "image": "busybox", "command": ["sh", "-c", script], **fields}
