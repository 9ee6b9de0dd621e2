"""Random requests to the whole server, in process: none ends in a 500, in a line of the log about a
defect, or in a request that takes long, and every error is a Status with the code of its answer.

``FUZZ_REQUESTS=5000 pytest tests/server/test_fuzz.py --hypothesis-profile=default`` explores.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kubepy.api import errors, protobuf
from kubepy.api.scheme import BUILT_IN, Resource
from kubepy.controlplane.groups import OF_SERVER
from kubepy.server.application import ServeOptions
from kubepy.storage.yaml import dump
from tests.apiserver.random_objects import ANYTHING, INTEGERS, TEXT, objects
from tests.apiserver.test_random_requests import TYPES
from tests.apiserver.test_stored_objects import manifests
from tests.server.conftest import TOKEN, Answer, Api

EXAMPLES = int(os.environ.get("FUZZ_REQUESTS", "80"))
SOME = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
SECONDS = 10.0  # that a request may take on a machine with other work: a hang is longer
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
)
HOOKS = (
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
)
# What an API server itself answers with 500: patches that do not fit the type.
UPSTREAMS_500 = (
    b"failed to create typed patch object",
    b"list element types are not identical",
    b"unable to find api field in struct",
)
TEXT_ERRORS = (404,)  # "404 page not found", as Go's mux says it


class Sent(NamedTuple):
    """A request: ``target`` is the path with its query."""

    method: str
    target: str
    headers: tuple[tuple[str, bytes], ...] = ()
    body: bytes = b""


CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {
                                        "type": "integer",
                                        "x-kubernetes-validations": [{"rule": "self < 10"}],
                                    },
                                    "items": {"type": "array", "items": {"type": "string"}},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
THING: dict[str, Any] = {
    "apiVersion": "example.org/v1",
    "kind": "Thing",
    "metadata": {"name": "web"},
    "spec": {"size": 1, "items": ["a"]},
}


class Fuzzed:
    """A server with objects of many kinds. What a request may break for those after it is made good
    again."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.kept = [CRD, THING, *self._creatable()]
        self.refill()

    def _creatable(self) -> list[dict[str, Any]]:
        """Return a valid object of each kind."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for manifest in manifests():
            found.setdefault((manifest["apiVersion"], manifest["kind"]), manifest)
        return list(found.values())

    def refill(self) -> None:
        cluster = self.api.cluster
        for obj in self.kept:
            with suppress(errors.Status):
                resource = cluster.scheme.for_kind(obj["apiVersion"], obj["kind"])
                if resource is None:
                    continue
                made = copy.deepcopy(obj)
                made["metadata"] = {
                    **made["metadata"],
                    "name": "web" if obj is not CRD else CRD["metadata"]["name"],
                }
                cluster.client.create(resource.key, made, namespace="default")
        self.remove_hooks()

    def remove_hooks(self) -> None:
        """Webhooks that nobody serves would be the answer to everything."""
        for key in HOOKS:
            for obj in self.api.cluster.client.list(key).items:
                with suppress(errors.Status):
                    self.api.cluster.client.delete(key, obj["metadata"]["name"])

    def send(self, sent: Sent) -> tuple[Answer, float]:
        raw_path, _, query = sent.target.partition("?")
        lines = [(b"authorization", f"Bearer {TOKEN}".encode())]
        if any(name == "authorization" for name, _ in sent.headers):
            lines = []
        scope = {
            "type": "http",
            "method": sent.method,
            "raw_path": raw_path.encode(),
            "path": raw_path,
            "query_string": query.encode(),
            "http_version": "1.1",
            "client": ("127.0.0.1", 1),
            "headers": [*lines, *((name.encode(), value) for name, value in sent.headers)],
        }
        messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": sent.body, "more_body": False}
        ]
        start = time.monotonic()
        answer = self.api.send(scope, messages)
        return answer, time.monotonic() - start

    def check(self, sent: Sent) -> Answer:
        """Send a request and check its answer."""
        del self.api.log[:]
        answer, seconds = self.send(sent)
        text = f"{sent}\n{answer.status} {answer.headers} {answer.body[:2000]!r}\n{self.api.log}"
        changes_hooks = (
            any(key.partition(".")[0] in sent.target for key in HOOKS)
            or "configurations" in sent.target
        )
        if changes_hooks:
            self.remove_hooks()
        assert not [line for line in self.api.log if not line.startswith("Warning:")], text
        assert 200 <= answer.status < 600, text
        assert answer.status != 500 or any(words in answer.body for words in UPSTREAMS_500), text
        assert seconds < SECONDS, f"{seconds} s: {text}"
        if answer.status >= 400:
            check_error(sent, answer, text)
        return answer


def check_error(sent: Sent, answer: Answer, text: str) -> None:
    """Check that an error is a Status that says the same as its answer."""
    content_type = answer.headers.get("content-type", "")
    if content_type.startswith("text/plain"):
        assert answer.status in TEXT_ERRORS, text
        return
    if content_type.startswith(JSON):
        status = json.loads(answer.body)
    elif content_type.startswith(PROTOBUF):
        status = protobuf.decode(answer.body)
    else:
        assert content_type.startswith(YAML), text
        return
    assert (status["kind"], status["apiVersion"], status["status"]) == (
        "Status",
        "v1",
        "Failure",
    ), text
    assert status["code"] == answer.status, text
    assert isinstance(status["metadata"], dict), text
    assert isinstance(status.get("message", ""), str), text
    assert "Traceback" not in status.get("message", ""), text


@pytest.fixture(scope="module")
def fuzzed(new_folder: Any) -> Iterator[Fuzzed]:
    api = Api(new_folder(), ServeOptions(controllers=OF_SERVER))
    yield Fuzzed(api)
    api.close()


# --- what is sent ---

RESOURCES = sorted(BUILT_IN, key=lambda resource: resource.key)
NAMES = st.sampled_from(
    (
        "web",
        "web",
        "web",
        "default",
        "kube-system",
        "missing",
        "a" * 300,
        "Upper",
        "..",
        ".",
        "a/b",
        "a%b",
        "é",
        "\0",
        "\n",
        " ",
        "things.example.org",
        "v1.apps",
        "",
    )
)
NAMESPACES = st.sampled_from(
    ("default", "default", "default", "kube-system", "missing", "Bad_Name", "", "..", "\0")
)
METHODS = st.sampled_from(
    (
        "GET",
        "GET",
        "GET",
        "POST",
        "PUT",
        "PATCH",
        "DELETE",
        "HEAD",
        "OPTIONS",
        "TRACE",
        "CONNECT",
        "WATCH",
        "get",
        "PROPFIND",
        "X" * 100,
    )
)
SUBRESOURCES = st.sampled_from(
    (
        "",
        "",
        "",
        "",
        "status",
        "scale",
        "log",
        "exec",
        "attach",
        "portforward",
        "proxy",
        "proxy/a/b",
        "eviction",
        "binding",
        "ephemeralcontainers",
        "resize",
        "approval",
        "finalize",
        "token",
        "rubbish",
        "status/more",
        "\0",
    )
)
WORDS = st.sampled_from(
    (
        "",
        "api",
        "apis",
        "v1",
        "v2",
        "apps",
        "namespaces",
        "default",
        "pods",
        "watch",
        "proxy",
        "status",
        "..",
        ".",
        "%",
        "%00",
        "%2f",
        "%2e%2e",
        "%ff",
        "%zz",
        "é",
        "a" * 5000,
        "healthz",
        "livez",
        "readyz",
        "ping",
        "etcd",
        "version",
        "openapi",
        "v3",
        "metrics",
        "logs",
        "debug",
        "pprof",
        ".well-known",
        "openid-configuration",
        "openid",
        "jwks",
        "things",
        "example.org",
        "deployments",
        "scale",
        "web",
        "*",
        ";",
        ":",
        "//",
        "swagger.json",
        "\\",
        "+",
        "{}",
    )
)
NUMBERS = (
    "0",
    "1",
    "2",
    "-1",
    "00",
    "+1",
    "1.5",
    "1e3",
    "abc",
    "9" * 25,
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "é",
    "٣",
    "0x10",
    "1_000",
    " 1",
    "",
)
TOKENS = (
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYVx1MDAwMCJ9",
    "e30",
    "W10",
    "bnVsbA",
    "rubbish",
    "====",
    "é",
    "eyJ2IjoxfQ",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6IngiLCJzdGFydCI6MX0",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTk5OTk5OTk5OTk5OTk5OTk5OTk5OSwic3RhcnQiOiIuLi8uLi9hIn0",
)
SELECTORS = (
    "a",
    "!a",
    "a=b",
    "a==b",
    "a!=b",
    "a in (b,c)",
    "a notin (b)",
    "a>1",
    "a<x",
    "a in",
    "a=,",
    ",,,",
    "((((",
    "é=ü",
    "a=b,c=d",
    "metadata.name=web",
    "metadata.name=a/b",
    "metadata.name!=web",
    "spec.nodeName=x",
    "\\",
    "status.phase=Running",
    "metadata.name=\\,",
    "a" * 5000,
    "=",
    "==",
    "a=" + "b" * 100,
    "\0",
    "%",
    "metadata.name=..",
    "metadata.namespace=default",
    "spec.unschedulable=true",
    "type=Opaque",
    "x in (" * 50,
)
FLAGS = ("true", "false", "1", "0", "yes", "", "TRUE", "é")
QUERY: dict[str, tuple[str, ...]] = {
    "labelSelector": SELECTORS,
    "fieldSelector": SELECTORS,
    "limit": NUMBERS,
    "continue": TOKENS,
    "resourceVersion": NUMBERS,
    "resourceVersionMatch": ("Exact", "NotOlderThan", "", "rubbish"),
    "timeoutSeconds": NUMBERS,
    "watch": FLAGS,
    "allowWatchBookmarks": FLAGS,
    "sendInitialEvents": FLAGS,
    "dryRun": ("All", "", "rubbish"),
    "fieldManager": ("me", "", "a" * 200, "\0", "é"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "", "rubbish"),
    "force": FLAGS,
    "pretty": FLAGS,
    "gracePeriodSeconds": NUMBERS,
    "propagationPolicy": ("Foreground", "Background", "Orphan", "", "rubbish"),
    "orphanDependents": FLAGS,
    "uid": ("", "a"),
    "timeout": ("1s", "0", "-1s", "1h", "rubbish", "1", "9" * 30 + "h", "é"),
    "includeObject": ("None", "Metadata", "Object", "rubbish", ""),
    "container": ("web", "", "\0"),
    "follow": FLAGS,
    "tailLines": NUMBERS,
    "limitBytes": NUMBERS,
    "sinceSeconds": NUMBERS,
    "previous": FLAGS,
    "timestamps": FLAGS,
    "sinceTime": ("2026-01-01T00:00:00Z", "rubbish", ""),
    "stdin": FLAGS,
    "tty": FLAGS,
    "command": ("sh", ""),
    "stream": ("Stdout", "All", "rubbish"),
    "path": ("/", "..", ""),
    "ports": NUMBERS,
    "verbose": FLAGS,
    "exclude": ("ping", "rubbish"),
    "shardSelector": ("a", ""),
    "kind": ("Pod",),
    "ignoreStoreReadErrorWithClusterBreakingPotential": FLAGS,
    "rubbish": ("a",),
    "": ("",),
    "separateWarnings": FLAGS,
}
ACCEPTS = (
    JSON,
    YAML,
    PROTOBUF,
    "*/*",
    "application/*",
    "text/html",
    "",
    ",",
    ";;;",
    "a/b/c",
    "application/cbor",
    f"{JSON};as=Table;g=meta.k8s.io;v=v1",
    f"{JSON};as=Table;g=meta.k8s.io;v=v1beta1,{JSON}",
    f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1",
    f"{PROTOBUF},{JSON}",
    f"{YAML};as=Table;g=meta.k8s.io;v=v1",
    f"{JSON};as=Rubbish;g=x;v=y",
    f"{JSON};stream=watch",
    f"{PROTOBUF};stream=watch",
    f"{JSON};q=nan",
    f"{JSON};q=inf,{YAML};q=-1",
    f"{JSON};q=1e999",
    f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    f"{PROTOBUF};g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    f"{JSON};profile=a;pretty=1",
    f"{JSON};as=Table;g=meta.k8s.io;v=v1" + ",a/b" * 3000,
)
HEADERS: dict[str, tuple[str, ...]] = {
    "accept": ACCEPTS,
    "content-type": (
        JSON,
        YAML,
        PROTOBUF,
        *PATCHES,
        "text/plain",
        "",
        ";",
        f"{JSON}; charset=latin1",
        "application/cbor",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        f"{PROTOBUF};type=Pod",
        "APPLICATION/JSON",
        "é",
        "*/*",
    ),
    "impersonate-user": (
        "jane",
        "system:serviceaccount:default:default",
        "system:node:a",
        "",
        "é",
        "system:anonymous",
        "system:serviceaccount:",
        "a" * 5000,
    ),
    "impersonate-group": ("system:masters", "", "a,b"),
    "impersonate-uid": ("1", ""),
    "impersonate-extra-a%2fb": ("x",),
    "impersonate-extra-": ("x",),
    "impersonate-extra-%zz": ("x",),
    "if-none-match": ('"a"', "*", "", 'W/"x"'),
    "if-match": ("*",),
    "if-modified-since": ("yesterday",),
    "accept-encoding": ("gzip", "br", "identity;q=0", "*", "", "gzip;q=0"),
    "content-encoding": ("gzip", "br", "rubbish"),
    "range": ("bytes=0-1", "bytes=99-1"),
    "expect": ("100-continue", "rubbish"),
    "upgrade": ("websocket", "SPDY/3.1"),
    "connection": ("Upgrade", "close", "keep-alive"),
    "host": ("example.com", "", "a:b:c", "é"),
    "user-agent": ("curl/8", "kubectl/v1.36.2", "", "é/\t", "/" * 300),
    "authorization": (
        "Bearer rubbish",
        "Basic YTpi",
        "Bearer",
        "",
        "Bearer a.b.c",
        "Bearer eyJhbGciOiJub25lIn0.e30.",
        "Bearer é",
        "Bearer eyJhbGciOiJFUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOjF9.YQ",
        "bearer  x",
        "Digest x",
        "Bearer " + "a" * 9000,
    ),
    "audit-id": ("a", "é", "x" * 5000),
    "x-forwarded-for": ("1.2.3.4",),
    "content-length": ("-1", "abc", "0"),
    "transfer-encoding": ("chunked", "gzip"),
    "sec-websocket-protocol": ("v5.channel.k8s.io", "base64url.bearer.authorization.k8s.io.YQ"),
    "traceparent": ("00-a-b-01",),
    "x-stream-protocol-version": ("v4",),
}
BODIES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"1",
    b'"a"',
    b"NaN",
    b"Infinity",
    b"-",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"{}",
    b"\0",
    b'{"a":NaN}',
    b'{"metadata":{"name":"web"},"metadata":{"name":"b"}}',
    b"[" * 50_000,
    b'{"a":' * 50_000,
    b"- " * 50_000,
    b"{" * 50_000,
    b'{"metadata":' * 9_000 + b"{}" + b"}" * 9_000,
    b'{"spec":' + b"[" * 9_999 + b"]" * 9_999 + b"}",
    b"a: &a [x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*"
    b"c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e]\ng: "
    b"[*f,*f,*f,*f,*f,*f,*f]\n",
    b"a: &a [*a]\n",
    b"a: &a\n  <<: *a\n",
    b"<<: 1\n",
    b"? [a, b]\n: c\n",
    b"!!python/object:os.system x",
    b"!!binary rubbish",
    b"%YAML 9.9\n---",
    b"---\n---\n---\n",
    b"a: 1e999\n",
    b"a: 0o777777777777777777777777777\n",
    b"a: 2026-99-99\n",
    b"a: 1:2:3\n",
    b"\t\t-\n",
    b'{"a":1e999}',
    b'{"a":-0}',
    b'{"a":' + b"9" * 5000 + b"}",
    b'{"a":1e' + b"9" * 100 + b"}",
    b'{"\\ud800":"\\udfff"}',
    b'{"metadata":{"name":"\\ud800"}}',
    b'{"metadata":{"name":"\\u0000"}}',
    b'{"a":"\\x"}',
    b"k8s\0",
    b"k8s\0\n",
    b"k8s\0" + b"\xff" * 30,
    b"k8s\0" + b"\n\x7f",
    b"k8s\0" + b"\x12\xff\xff\xff\xff\x0f",
    b"k8s\0\x0b" * 5000,
    b'[{"op":"add","path":"","value":1}]',
    b'[{"op":"replace","path":"/metadata","value":null}]',
    b'[{"op":"test"}]',
    b'[{"op":"remove","path":"/metadata/name"}]',
    b'[{"op":"add","path":"/metadata/labels/~2","value":1}]',
    b"[1]",
    b'[{"op":"copy","from":"","path":"/spec/a"}]',
    b'[{"op":"move","from":"/spec","path":"/spec/a"}]',
    b"[null]",
    b'[{"op":"add","path":"/metadata/finalizers/99999999999999999999","value":"a"}]',
    b'[{"op":1,"path":2}]',
    b"[[]]",
    b"["
    + b",".join([b'{"op":"copy","from":"/metadata","path":"/metadata/annotations"}'] * 200)
    + b"]",
    b"[" + b",".join([b'{"op":"test","path":"/kind","value":"x"}'] * 10_001) + b"]",
    b'{"$patch":"delete"}',
    b'{"$patch":"replace"}',
    b'{"$patch":1}',
    b'{"spec":{"$patch":"rubbish"}}',
    b'{"spec":{"$retainKeys":1}}',
    b'{"spec":{"containers":[{"$patch":"delete"}]}}',
    b'{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}',
    b'{"metadata":{"$setElementOrder/finalizers":1}}',
    b'{"spec":{"$setElementOrder/containers":[1]}}',
    b'{"metadata":null}',
    b'{"metadata":1}',
    b'{"kind":1}',
    b'{"apiVersion":{}}',
    b'{"apiVersion":"a/b/c"}',
    b'{"metadata":{"managedFields":1}}',
    b'{"metadata":{"managedFields":[{}]}}',
    b'{"metadata":{"managedFields":[{"manager":"a","operation":"Apply","apiVersion":"x/y",'
    b'"fieldsType":"FieldsV1","fieldsV1":{"f:a":1,"k:{":{},"v:x":{}}}]}}',
    b'{"metadata":{"resourceVersion":"x"}}',
    b'{"metadata":{"resourceVersion":"99999999999999999999999"}}',
    b'{"metadata":{"uid":"x"}}',
    b'{"metadata":{"generateName":"a"}}',
    b'{"metadata":{"name":"web","namespace":"other"}}',
    b'{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":""}]}}',
    b'{"metadata":{"creationTimestamp":"x"}}',
    b'{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}',
    b'{"gracePeriodSeconds":"x"}',
    b'{"gracePeriodSeconds":-1}',
    b'{"preconditions":1}',
    b'{"preconditions":{"uid":1}}',
    b'{"dryRun":"All"}',
    b'{"dryRun":[1]}',
    b'{"propagationPolicy":1}',
    b'{"orphanDependents":"x"}',
    b'{"kind":"DeleteOptions","apiVersion":1}',
    b'{"kind":"Status"}',
    b'{"gracePeriodSeconds":1e400}',
    b'{"gracePeriodSeconds":99999999999999999999}',
    b'{"spec":{"replicas":"x"}}',
    b'{"target":{"name":"x"}}',
    b'{"spec":{"replicas":99999999999}}',
    b'{"spec":{"replicas":1.5}}',
)
BYTES = st.sampled_from(BODIES)


OPERATIONS = st.sampled_from(("add", "replace", "test", "remove", "copy", "move"))
POINTERS = st.sampled_from(
    (
        "",
        "/",
        "/spec",
        "/metadata/labels",
        "/metadata/name",
        "/a/b",
        "/spec/containers/0",
        "/spec/containers/-",
        "/~0~1",
        "x",
    )
)
WRITE_QUERIES = st.sampled_from(
    (
        "",
        "fieldManager=you",
        "fieldManager=you&force=true",
        "fieldValidation=Strict",
        "dryRun=All",
        "fieldManager=me",
        "fieldManager=me&force=true",
        "fieldValidation=Ignore",
        "fieldManager=me&dryRun=All",
    )
)


@st.composite
def targets(draw: st.DrawFn) -> str:
    """The path of something of a resource, or of nothing."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        path = "/" + "/".join(draw(st.lists(WORDS, max_size=8)))
        return draw(st.sampled_from(("", "", "", "http://host", "/", "*"))) + ascii_only(path)
    resource: Resource | None = draw(st.sampled_from(RESOURCES))
    assert resource is not None
    base = (
        "/apis/example.org/v1"
        if kind == 1
        else f"/apis/{resource.group}"
        if resource.group
        else "/api"
    )
    plural = "things" if kind == 1 else resource.plural
    if kind != 1:
        versions = (resource.version, *resource.other_versions, resource.version, "v9")
        base += f"/{draw(st.sampled_from(versions))}"
    parts = [base]
    if draw(st.integers(0, 30)) == 0:
        parts.append("watch")
    if (resource.namespaced or kind == 1) != (draw(st.integers(0, 20)) == 0):
        parts += ["namespaces", escaped(draw(NAMESPACES))]
    parts.append(plural)
    if draw(st.integers(0, 3)):
        parts.append(escaped(draw(NAMES)))
        if subresource := draw(SUBRESOURCES):
            parts.append(escaped(subresource))
    return "/".join(parts)


def escaped(text: str) -> str:
    return quote(text, safe="/.~-")


def ascii_only(text: str) -> str:
    return (
        "".join(char if "!" <= char <= "~" else quote(char, safe="") for char in text)
        .replace("?", "%3f")
        .replace("#", "%23")
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(QUERY)), max_size=4))
    pairs = [(name, draw(st.sampled_from(QUERY[name]))) for name in names]
    text = urlencode(pairs)
    ending = draw(st.integers(0, 40))
    return text + (
        "&%zz=%&&=;a=b;;&%ff=%00" if ending == 0 else "&a=" + "b" * 20_000 if ending == 1 else ""
    )


@st.composite
def headers(draw: st.DrawFn, *always: str) -> tuple[tuple[str, bytes], ...]:
    names = (
        draw(st.lists(st.sampled_from(sorted(HEADERS)), max_size=2))
        if draw(st.integers(0, 3)) == 0
        else []
    )
    names = sorted({*names, *(always if draw(st.integers(0, 5)) == 0 else ())})
    encodings = st.sampled_from(("utf-8", "utf-8", "latin-1"))
    return tuple(
        (name, draw(st.sampled_from(HEADERS[name])).encode(draw(encodings), "replace").strip())
        for name in names
    )


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """Cut, turn around or overwrite a part of a body."""
    for _ in range(draw(st.sampled_from((0, 0, 0, 0, 1, 2)))):
        place, size = draw(st.integers(0, max(len(data), 1))), draw(st.integers(0, 8))
        match draw(st.integers(0, 4)):
            case 0:
                data = data[:place]
            case 1:
                data = data[:place] + data[place + size :]
            case 2:
                data = data[:place] + draw(st.binary(max_size=4)) + data[place + size :]
            case 3:
                data = data[:place] + data[place : place + size] * 3 + data[place + size :]
            case _:
                data = data[:place] + draw(BYTES)[:200] + data[place:]
    return data


def encoded(obj: Any, media_type: str) -> bytes:
    if media_type == PROTOBUF:
        with suppress(Exception):  # a value that its field does not have can't be encoded
            return protobuf.encode(obj)
    if media_type in (YAML, PATCHES[3]):
        with suppress(Exception):
            return dump(obj).encode()
    return json.dumps(obj).encode()


@st.composite
def of_kind(draw: st.DrawFn, resource: Resource) -> dict[str, Any]:
    """A manifest with other values at some places, or an object made of its type."""
    type_name = TYPES.get(resource)
    valid = [
        obj
        for obj in manifests()
        if obj["kind"] == resource.kind and obj["apiVersion"] == resource.api_version
    ]
    if valid and draw(st.integers(0, 3)):
        obj = changed(draw, draw(st.sampled_from(valid)))
    elif type_name:
        obj = draw(objects(type_name))
    else:
        obj = {"metadata": {"name": "web"}, "spec": draw(ANYTHING)}
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    if draw(st.integers(0, 3)) and isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {
            **obj["metadata"],
            "name": "web" if draw(st.integers(0, 5)) else draw(NAMES),
        }
    return obj


def changed(draw: st.DrawFn, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest with other values at up to three places."""
    made = copy.deepcopy(manifest)
    for _ in range(draw(st.integers(0, 3))):
        place: Any = made
        while keys := sorted(place) if isinstance(place, dict) else list(range(len(place))):
            key = draw(st.sampled_from(keys))
            if place is made and key in ("apiVersion", "kind") and draw(st.integers(0, 9)):
                continue
            if not isinstance(place[key], dict | list) or draw(st.integers(0, 3)) == 0:
                place[key] = draw(_like(place[key]) if draw(st.integers(0, 4)) else TEXT | ANYTHING)
                break
            place = place[key]
    return made


def _like(value: Any) -> SearchStrategy[Any]:
    """Return a strategy for values of the same type in JSON."""
    match value:
        case bool():
            return st.booleans()
        case int():
            return INTEGERS
        case str():
            return TEXT
        case [first, *_]:
            return st.lists(st.just(first), max_size=3)
    return st.just({}) if isinstance(value, dict) else ANYTHING


def path_of(resource: Resource, namespace: str, *more: str) -> str:
    base = (
        f"/apis/{resource.group}/{resource.version}"
        if resource.group
        else f"/api/{resource.version}"
    )
    place = ["namespaces", namespace] if resource.namespaced else []
    return "/".join([base, *place, resource.plural, *more])


@st.composite
def any_requests(draw: st.DrawFn) -> Sent:
    query = draw(queries())
    body = draw(mutated(draw(BYTES))) if draw(st.booleans()) else b""
    return Sent(
        draw(METHODS), draw(targets()) + (f"?{query}" if query else ""), draw(headers()), body
    )


@st.composite
def writes(draw: st.DrawFn) -> Sent:
    """Creations, updates and patches of all four types with objects of the kind that the path is
    about."""
    resource = draw(st.sampled_from(RESOURCES))
    obj = draw(of_kind(resource))
    method = draw(st.sampled_from(("POST", "PUT", "PATCH", "PATCH")))
    media_type = draw(
        st.sampled_from(PATCHES if method == "PATCH" else (JSON, JSON, YAML, PROTOBUF))
    )
    data = encoded(obj, media_type)
    if media_type == PATCHES[0]:
        data = json.dumps(
            [
                {
                    "op": draw(OPERATIONS),
                    "path": draw(POINTERS),
                    "from": draw(POINTERS),
                    "value": value,
                }
                for value in (obj.get("spec"), draw(ANYTHING))
            ]
        ).encode()
    elif draw(st.integers(0, 30)) == 0:
        data = draw(BYTES)
    path = path_of(resource, draw(NAMESPACES) if draw(st.integers(0, 9)) == 0 else "default")
    if method != "POST":
        path += "/web"
    subresources = [
        name
        for name in resource.subresources
        if name not in ("proxy", "exec", "attach", "portforward")
    ]
    if subresources and draw(st.integers(0, 3)) == 0:
        path += (
            f"{'/web' if method == 'POST' else ''}/{draw(st.sampled_from(sorted(subresources)))}"
        )
    query = draw(WRITE_QUERIES)
    others = tuple(
        pair
        for pair in draw(headers("accept"))
        if pair[0] not in ("content-type", "authorization")
        and not pair[0].startswith("impersonate-")
    )
    return Sent(
        method,
        ascii_only(path) + (f"?{query}" if query else ""),
        (("content-type", media_type.encode()), *others),
        draw(mutated(data)),
    )


@st.composite
def reads(draw: st.DrawFn) -> Sent:
    """Lists and watches with everything that can be asked of them."""
    resource = draw(st.sampled_from(RESOURCES))
    query = draw(queries())
    namespace = draw(st.sampled_from(("default", "default", "missing")))
    path = path_of(resource, namespace)
    if resource.namespaced and draw(st.integers(0, 2)) == 0:
        path = path_of(resource._replace(namespaced=False), "")
    return Sent("GET", path + (f"?{query}" if query else ""), draw(headers("accept")))


# --- the tests ---


@SOME
@given(sent=any_requests())
def test_any_request_gets_an_answer(fuzzed: Fuzzed, sent: Sent) -> None:
    fuzzed.check(sent)


@SOME
@given(sent=writes())
def test_written_object_is_stored_or_refused(fuzzed: Fuzzed, sent: Sent) -> None:
    fuzzed.check(sent)


@SOME
@given(sent=reads())
def test_list_or_watch_gets_an_answer(fuzzed: Fuzzed, sent: Sent) -> None:
    fuzzed.check(sent)


@pytest.mark.parametrize(
    ("method", "media_type"),
    [("POST", JSON), ("POST", YAML), ("DELETE", JSON), ("PATCH", PATCHES[0])],
)
def test_each_odd_body_gets_an_answer(fuzzed: Fuzzed, method: str, media_type: str) -> None:
    path = "/api/v1/namespaces/default/configmaps" + ("" if method == "POST" else "/web?dryRun=All")
    for body in BODIES:
        fuzzed.check(Sent(method, path, (("content-type", media_type.encode()),), body))
