"""The causes that ``why`` can name: a closed list, each with one line that says what it means.

The line completes "deployment/web is stuck: …". Each cause has a page, ``docs/why/<cause>.md``, which is also its test.
"""

from __future__ import annotations

CAUSES = {
    "broken-revision": "a pod of an older, broken revision is not replaced until somebody deletes it",
    "dead-nodes-use-up-unavailable": "pods on dead nodes use up maxUnavailable, so no further pod is replaced",
    "min-ready-seconds": "pods are ready, but not yet for minReadySeconds",
    "misscheduled": "there are pods on nodes where they should not be",
    "no-controllers": "nobody runs the controllers, so nobody acts on what was changed",
    "not-ready": "it is not ready",
    "on-delete": "pods are replaced only when somebody deletes them (updateStrategy OnDelete)",
    "ordered-behind-broken-pod": "pods are replaced in order, and one before them does not become ready",
    "partition": "the rollout has reached its partition; pods below it keep the old revision",
    "paused": "the rollout is paused",
    "progress-deadline-exceeded": "there was no progress within progressDeadlineSeconds",
    "readiness-gate": "a readiness gate of the pod is not fulfilled",
    "rolling-out": "the controllers are at work on it",
    "scaled-to-zero": "it is scaled to zero, so there are no pods",
    "selector-conflict": "pods that its selector chooses belong to another owner",
    "surge-waits": "old pods stay until the new ones beside them are available",
    "up-to-date": "there is nothing to do",
}
