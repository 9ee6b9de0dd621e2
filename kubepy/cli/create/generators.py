"""``kubepy create namespace|deployment|job|cronjob|quota|…``. Upstream: ``kubectl/pkg/cmd/create/create_*.go``."""

from __future__ import annotations

import re

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.create.objects import command_from, generator, metadata
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.verbs import Invocation
from kubepy.quoting import printable


@generator("namespace", "namespace NAME", examples="""
# A namespace
kubepy create namespace edge

# Only show it
kubepy create namespace edge --dry-run=client -o yaml
""")
def namespace(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a namespace with the specified name."""
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}, "spec": {}, "status": {}}


@generator("serviceaccount", "serviceaccount NAME", failure="failed to create serviceaccount: ",
           examples="""
# A service account
kubepy create serviceaccount robot

# In a namespace
kubepy create serviceaccount robot -n edge
""")
def serviceaccount(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a service account with the specified name."""
    return {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata(factory, name)}


# --- workloads ----------------------------------------------------------------------------------------------------


@generator("deployment", "deployment NAME --image=image -- [COMMAND] [args...]", checks_name=False,
           required=["image"], flags=[
    strings("image", help="Image names to run. A deployment can have several for a pod of several containers."),
    integer("port", default=-1, bits=32, help="The containerPort that this deployment exposes."),
    integer("replicas", "r", default=1, bits=32, help="Number of replicas to create."),
], failure="failed to create deployment: ", examples="""
# Three pods of one image
kubepy create deployment web --image=nginx:1.25 --replicas=3

# Another command than the image's own, and a port
kubepy create deployment web --image=nginx:1.25 --port=80 -- nginx-debug -g 'daemon off;'
""")
def deployment(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a deployment with the specified name."""
    command = command_from(given)
    if len(given.image) > 1 and command:
        raise CliError("cannot specify multiple --image options and command")
    containers = [container(_container_name(factory, image), image, command) for image in given.image]
    if given.port >= 0:
        containers[0] = _with_port(containers[0], given.port)
    labels = {"app": name}
    return {
        "kind": "Deployment", "apiVersion": "apps/v1", "metadata": metadata(factory, name, labels=labels),
        "spec": {"replicas": given.replicas, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}, "strategy": {}},
        "status": {},
    }


def container(name: str, image: str, command: list[str]) -> Object:
    fields = {"image": image, "command": command}
    return {"name": name, **{key: value for key, value in fields.items() if value}, "resources": {}}


def _with_port(one: Object, port: int) -> Object:
    resources = one.pop("resources")
    return {**one, "ports": [{"containerPort": port}], "resources": resources}


def _container_name(factory: Factory, image: str) -> str:
    """The last part of the image's name; with a random suffix when it holds characters that a name may not."""
    name = image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    if not re.search(r"[_.]", name):
        return name
    from kubepy.api.clock import Ids

    ids = factory.cluster.ids if factory.has_cluster else Ids()
    return f"{re.sub(r'[_.]', '-', name)}-{ids.suffix()}"


@generator("job", "job NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...]", checks_name=False, flags=[
    string("image", help="Image name to run."),
    string("from", help="The name of the resource to create a Job from (only CronJob is supported)."),
], failure="failed to create job: ", examples="""
# A job that says hello
kubepy create job hello --image=busybox -- echo hello

# What a cron job would run, now
kubepy create job nightly-now --from=cronjob/nightly
""")
def job(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a job with the specified name."""
    source, command = given.flag("from"), command_from(given)
    if bool(given.image) == bool(source):
        raise CliError("either --image or --from must be specified")
    if source and command:
        raise CliError("cannot specify --from and command")
    if source:
        return _job_from_cronjob(factory, given, name, source)
    spec = {"template": _run_once(name, given.image, command, "Never")}
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata(factory, name), "spec": spec, "status": {}}


def _run_once(name: str, image: str, command: list[str], restart: str) -> Object:
    return {"metadata": {}, "spec": {"containers": [container(name, image, command)], "restartPolicy": restart}}


def _job_from_cronjob(factory: Factory, given: Invocation, name: str, source: str) -> Object:
    from kubepy.cli.runtime.verbs import find

    found = find(factory, given, args=[source]).all_infos()[0].content
    if found["kind"] != "CronJob":
        raise CliError(f"unknown object type *v1.{found['kind']}")
    template = found["spec"]["jobTemplate"]
    meta = template.get("metadata", {})
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": found["metadata"]["name"],
             "uid": found["metadata"]["uid"], "controller": True}
    annotations = {"cronjob.kubernetes.io/instantiate": "manual", **meta.get("annotations", {})}
    made = metadata(factory, name, labels=meta.get("labels"), annotations=annotations, ownerReferences=[owner])
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": made, "spec": template["spec"], "status": {}}


@generator("cronjob", "cronjob NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...]", checks_name=False,
           required=["image", "schedule"], flags=[
               string("image", help="Image name to run."),
               string("schedule", help="A schedule in the Cron format the job should be run with."),
               string("restart", help="The job's restart policy: OnFailure (default) or Never."),
           ], failure="failed to create cronjob: ", examples="""
# A job every night
kubepy create cronjob nightly --image=busybox --schedule='0 3 * * *'

# Every five minutes, with a command
kubepy create cronjob ping --image=busybox --schedule='*/5 * * * *' -- ping -c1 db
""")
def cronjob(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a cron job with the specified name."""
    template = _run_once(name, given.image, command_from(given), given.restart or "OnFailure")
    spec = {"schedule": given.schedule, "jobTemplate": {"metadata": {"name": name}, "spec": {"template": template}}}
    return {"kind": "CronJob", "apiVersion": "batch/v1", "metadata": metadata(factory, name), "spec": spec,
            "status": {}}


# --- policy -------------------------------------------------------------------------------------------------------


@generator("quota", "quota NAME [--hard=key1=value1,key2=value2] [--scopes=Scope1,Scope2]", flags=[
    string("hard", help="A comma-delimited set of resource=quantity pairs that define a hard limit."),
    string("scopes", help="A comma-delimited set of quota scopes that must all match each object tracked."),
], failure="failed to create quota: ", examples="""
# At most three pods
kubepy create quota small --hard=pods=3

# At most ten pods without resource requests
kubepy create quota best-effort --hard=pods=10 --scopes=BestEffort
""")
def quota(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a resource quota with the specified name, hard limits, and optional scopes."""
    spec: Object = {}
    if given.hard:
        spec["hard"] = dict(_limit(part) for part in given.hard.split(","))
    if given.scopes:
        spec["scopes"] = [_scope(part) for part in given.scopes.split(",")]
    return {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": metadata(factory, name), "spec": spec,
            "status": {}}


def _limit(part: str) -> tuple[str, str]:
    from kubepy.api.values.quantity import QuantityError, parse_quantity

    key, equals, value = part.partition("=")
    if not equals or "=" in value:
        raise CliError(printable(f"Invalid argument syntax {part}, expected <resource>=<value>"))
    try:
        return key, str(parse_quantity(value))
    except QuantityError as error:
        raise CliError(str(error)) from None


def _scope(part: str) -> str:
    if not part:
        raise CliError('invalid resource quota scope ""')
    return part


@generator("poddisruptionbudget", "poddisruptionbudget NAME --selector=SELECTOR --min-available=N", flags=[
    string("min-available", help="The minimum number or percentage of available pods this budget requires."),
    string("max-unavailable", help="The maximum number or percentage of unavailable pods this budget requires."),
    string("selector", help="A label selector to use for this budget; only equality is supported."),
], failure="failed to create poddisruptionbudgets: ", examples="""
# Keep one pod of web running
kubepy create poddisruptionbudget web --selector=app=web --min-available=1

# At most half of them missing at a time
kubepy create poddisruptionbudget web --selector=app=web --max-unavailable=50%
""")
def poddisruptionbudget(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a pod disruption budget with the specified name, selector, and desired minimum available pods."""
    if not given.selector:
        raise CliError("a selector must be specified")
    if not given.max_unavailable and not given.min_available:
        raise CliError("one of min-available or max-unavailable must be specified")
    if given.max_unavailable and given.min_available:
        raise CliError("min-available and max-unavailable cannot be both specified")
    field, flag = ("minAvailable", "min-available") if given.min_available else ("maxUnavailable", "max-unavailable")
    value = given.flag(flag)
    if not re.fullmatch(r"[0-9]+%?", value):
        raise CliError(f"invalid format specified for {flag}")
    number = int_or_none(value, 32)
    spec: Object = {field: value if number is None else number,
                    "selector": _selector(given.selector)}
    if field == "maxUnavailable":
        spec = dict(reversed(spec.items()))
    status = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    return {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": metadata(factory, name),
            "spec": spec, "status": status}


def _selector(text: str) -> Object:
    from kubepy.api.selectors import SelectorError, parse_to_label_selector

    try:
        return parse_to_label_selector(text)
    except SelectorError as error:
        raise CliError(str(error)) from None


@generator("priorityclass", "priorityclass NAME --value=VALUE --global-default=BOOL", checks_name=False, flags=[
    integer("value", bits=32, help="The value of this priority class."),
    boolean("global-default", help="Whether this PriorityClass should be considered as the default priority."),
    string("description", help="When this priority class should be used."),
    string("preemption-policy", default="PreemptLowerPriority", help="The policy for preempting pods with lower "
           "priority."),
], failure="failed to create priorityclass: ", examples="""
# A priority above the default one
kubepy create priorityclass high --value=1000

# The one of pods that name none, which never drives others away
kubepy create priorityclass low --value=-10 --global-default --preemption-policy=Never
""")
def priorityclass(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a priority class with the specified name, value, globalDefault and description."""
    obj: Object = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name},
                   "value": given.value}
    if given.global_default:
        obj["globalDefault"] = True
    if given.description:
        obj["description"] = given.description
    return {**obj, "preemptionPolicy": given.preemption_policy}
