"""Quotas and limits on the command line: refused objects, and the output of get and describe."""

from __future__ import annotations

from textwrap import dedent

from tests.cli.conftest import Kubepy

QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec: {hard: {pods: "2", requests.memory: 1Gi}, scopes: [NotTerminating]}
---
apiVersion: v1
kind: LimitRange
metadata: {name: l}
spec: {limits: [{type: Container, max: {memory: 1Gi}, defaultRequest: {memory: 512Mi}}]}
"""


def test_creation_beyond_quota_is_refused(kubepy: Kubepy) -> None:
    kubepy("apply", "-f", "-", stdin=QUOTA)
    assert kubepy("run", "a", "--image=a").status == 0
    assert kubepy("run", "b", "--image=b").status == 0
    assert kubepy("run", "c", "--image=c").err == (
        'Error from server (Forbidden): pods "c" is forbidden: exceeded quota: q, requested: '
        "pods=1,requests.memory=512Mi, used: pods=2,requests.memory=1Gi, limited: "
        "pods=2,requests.memory=1Gi\n"
    )


def test_quotas_and_limits_are_described_on_their_own(kubepy: Kubepy) -> None:
    kubepy("apply", "-f", "-", stdin=QUOTA)
    kubepy("run", "a", "--image=a")
    assert kubepy("describe", "quota", "q").out == dedent("""\
        Name:       q
        Namespace:  default
        Scopes:     NotTerminating
         * Matches all pods that do not have an active deadline. These pods usually include long running pods whose container command is not expected to terminate.
        Resource         Used   Hard
        --------         ----   ----
        pods             1      2
        requests.memory  512Mi  1Gi
        """)  # noqa: E501
    assert kubepy("describe", "limits", "l").out == dedent("""\
        Name:       l
        Namespace:  default
        Type        Resource  Min  Max  Default Request  Default Limit  Max Limit/Request Ratio
        ----        --------  ---  ---  ---------------  -------------  -----------------------
        Container   memory    -    1Gi  512Mi            1Gi            -
        """)
