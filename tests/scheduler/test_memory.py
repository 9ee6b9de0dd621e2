"""Cached results of nodes for pods of one template: they must equal the results of asking again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.runtime.reconcile import Key, WatchEvent
from kubepy.scheduler.framework import Handle
from kubepy.scheduler.plugins import FILTER_PLUGINS
from kubepy.scheduler.schedule_one import find_nodes_that_fit_pod
from kubepy.scheduler.scores import SCORE_PLUGINS

from .objects import handle, info, node, pod

NODES = [f"node-{number:02d}" for number in range(20)]
TEMPLATES = [
    {"requests": {"cpu": "1"}, "labels": {"app": "web"}},
    {"requests": {"memory": "1Gi"}, "labels": {"app": "web"}, "nodeSelector": {"disk": "fast"}},
    {"labels": {"app": "db"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]},
    {"labels": {"app": "web"}, "nodeSelector": {"kubernetes.io/hostname": "node-03"}},
    {
        "requests": {"cpu": "500m"},
        "labels": {"app": "db"},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "db"}},
            }
        ],
    },
]
CHANGES = st.lists(st.one_of(
    st.tuples(st.just("place"), st.integers(0, 4)),
    st.tuples(st.just("remove"), st.integers(0, 30)),
    st.tuples(st.just("terminate"), st.integers(0, 30)),
    st.tuples(st.just("taint"), st.integers(0, 19)),
    st.tuples(st.just("label"), st.integers(0, 19)),
    st.tuples(st.just("grow"), st.integers(0, 19)),
), max_size=25)  # fmt: skip


def labelled(
    name: str, *, cpu: str = "2", pods: str = "3", labels: dict[str, str] | None = None, **spec
):
    return node(
        name, cpu=cpu, pods=pods, labels={"kubernetes.io/hostname": name, **(labels or {})}, **spec
    )


NODE_CHANGES = {
    "taint": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    "label": {"labels": {"disk": "fast"}},
    "grow": {"cpu": "8"},
}


def answers(incoming, seen: Handle):
    """Return the nodes that fit with all their scores, and the reasons of the others."""
    found = find_nodes_that_fit_pod(info(incoming), seen, FILTER_PLUGINS)
    scores = (
        [plugin.score(found.cycle.pod, found.feasible, seen) for plugin in SCORE_PLUGINS]
        if found.feasible
        else []
    )
    rejected = {name: one.reasons for name, one in found.diagnosis.node_to_status.items()}
    return [one.name for one in found.feasible], scores, rejected


def observe(seen: Handle, key: Key, new) -> None:
    """Let the informers know an object, as the manager does."""
    seen.informers.observe(WatchEvent(key, seen.informers.get(*key), new))


@settings(max_examples=60, deadline=None)
@given(CHANGES)
def test_memoized_answers_equal_fresh_ones(changes):
    nodes = {name: labelled(name) for name in NODES}
    pods: dict[str, dict] = {}
    seen = handle(*nodes.values())
    for step, (what, number) in enumerate(changes):
        name = NODES[number % 20]
        if what == "place":
            fitting = answers(pod("asking", **TEMPLATES[number]), seen)[0]
            if fitting:
                pods[f"pod-{step}"] = pod(f"pod-{step}", on=fitting[0], **TEMPLATES[number])
                observe(seen, Key("pods", "default", f"pod-{step}"), pods[f"pod-{step}"])
        elif what in ("remove", "terminate") and pods:
            victim = sorted(pods)[number % len(pods)]
            key = Key("pods", "default", victim)
            old = pods.pop(victim)
            if what == "terminate":
                pods[victim] = {
                    **old,
                    "metadata": {**old["metadata"], "deletionTimestamp": "2026-11-20T10:00:00Z"},
                }
            observe(seen, key, pods.get(victim))
        elif what in NODE_CHANGES:
            nodes[name] = labelled(name, **NODE_CHANGES[what])
            observe(seen, Key("nodes", "", name), nodes[name])
        fresh = handle(*nodes.values(), *pods.values())
        for template in TEMPLATES:
            assert answers(pod("asking", **template), seen) == answers(
                pod("asking", **template), fresh
            )


def test_full_node_whose_pods_were_only_counted_is_not_remembered_as_fitting():
    cordoned = [labelled(name, unschedulable=True) for name in NODES[1:]]
    seen = handle(labelled(NODES[0], pods="1"), *cordoned)
    fitting = find_nodes_that_fit_pod(info(pod("asking")), seen, FILTER_PLUGINS).feasible
    assert [node_info.name for node_info in fitting] == [NODES[0]]
    assert not any(node_info.is_filled for node_info in seen.cache.nodes())

    observe(seen, Key("pods", "default", "first"), pod("first", on=NODES[0]))
    assert not find_nodes_that_fit_pod(info(pod("asking")), seen, FILTER_PLUGINS).feasible
