"""``kubepy create namespace|deployment|job|cronjob|quota|…``. Upstream:
``kubectl/pkg/cmd/create/create_*.go``."""

from __future__ import annotations

import re

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.create.objects import GeneratorOptions, generator, metadata
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, int_flag, string_flag, string_slice_flag
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api import clock, selectors
    from kubepy.api.values import quantity as quantities


@generator(
    "namespace NAME",
    GeneratorOptions,
    examples="""
# A namespace
kubepy create namespace edge

# Only show it
kubepy create namespace edge --dry-run=client -o yaml
""",
)
def namespace(factory: Factory, options: GeneratorOptions, name: str) -> Object:
    """Create a namespace with the specified name."""
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {},
        "status": {},
    }


@generator(
    "serviceaccount NAME",
    GeneratorOptions,
    failure="failed to create serviceaccount: ",
    examples="""
# A service account
kubepy create serviceaccount robot

# In a namespace
kubepy create serviceaccount robot -n edge
""",
)
def serviceaccount(factory: Factory, options: GeneratorOptions, name: str) -> Object:
    """Create a service account with the specified name."""
    return {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata(factory, name)}


# --- workloads ------------------------------------------------------------------------------------


class CreateDeploymentOptions(GeneratorOptions):
    """The flags of ``create deployment``."""

    image: list[str] = string_slice_flag(
        "image",
        help="Image names to run. A deployment can have several for a pod of several containers.",
    )
    port: int = int_flag(
        "port", default=-1, bits=32, help="The containerPort that this deployment exposes."
    )
    replicas: int = int_flag(
        "replicas", "r", default=1, bits=32, help="Number of replicas to create."
    )
    checks_name = False
    required = ("image",)


@generator(
    "deployment NAME --image=image -- [COMMAND] [args...]",
    CreateDeploymentOptions,
    failure="failed to create deployment: ",
    examples="""
# One pod of an image
kubepy create deployment shop --image=nginx:1.27

# Four pods of it
kubepy create deployment wide-shop --image=nginx:1.27 --replicas=4

# With a command in place of the image's own
kubepy create deployment ticker --image=busybox -- sh -c "while true; do date; sleep 5; done"

# With a port that the container listens on
kubepy create deployment cache --image=redis:7 --port=6379

# With several containers in each pod
kubepy create deployment pair --image=nginx:1.27 --image=fluent-bit:3.1 --image=redis:7
""",
)
def deployment(factory: Factory, options: CreateDeploymentOptions, name: str) -> Object:
    """Create a deployment with the specified name."""
    command = options.container_command()
    if len(options.image) > 1 and command:
        raise CliError("cannot specify multiple --image options and command")
    containers = [
        container(_container_name(factory, image, name), image, command) for image in options.image
    ]
    if options.port >= 0:
        resources = containers[0].pop("resources")
        containers[0] |= {"ports": [{"containerPort": options.port}], "resources": resources}
    labels = {"app": name}
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": metadata(factory, name, labels=labels),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            "strategy": {},
        },
        "status": {},
    }


def container(name: str, image: str, command: list[str]) -> Object:
    fields = {"image": image, "command": command}
    return {"name": name, **{key: value for key, value in fields.items() if value}, "resources": {}}


def _container_name(factory: Factory, image: str, deployment: str) -> str:
    """Return the last part of the image's name, with a random suffix if it has characters that a
    name may not have."""
    name = image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    if not re.search(r"[_.]", name):
        return name
    ids, revision = (
        (factory.cluster.ids, factory.client.revision())
        if factory.has_cluster
        else (clock.Ids(), 0)
    )
    suffix = ids.suffix("deployments.apps", factory.namespace, deployment, image, number=revision)
    return f"{re.sub(r'[_.]', '-', name)}-{suffix}"


class CreateJobOptions(GeneratorOptions):
    """The flags of ``create job``."""

    image: str = string_flag("image", help="Image name to run.")
    from_: str = string_flag(
        "from", help="The name of the resource to create a Job from (only CronJob is supported)."
    )
    checks_name = False


@generator(
    "job NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...]",
    CreateJobOptions,
    failure="failed to create job: ",
    examples="""
# Run the command of an image once
kubepy create job report --image=reporter:2.4

# Run another command
kubepy create job greeting --image=busybox -- echo hello

# Run the job of a CronJob now, without waiting for its schedule
kubepy create job nightly-by-hand --from=cronjob/nightly
""",
)
def job(factory: Factory, options: CreateJobOptions, name: str) -> Object:
    """Create a job with the specified name."""
    source = options.from_
    command = options.container_command()
    if bool(options.image) == bool(source):
        raise CliError("either --image or --from must be specified")
    if source and command:
        raise CliError("cannot specify --from and command")
    if source:
        cron_job = Builder(factory, options, args=[options.from_]).do().all_infos()[0].content
        if cron_job["kind"] != "CronJob":
            raise CliError(f"unknown object type *v1.{cron_job['kind']}")
        template = cron_job["spec"]["jobTemplate"]
        meta = template.get("metadata", {})
        owner = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": cron_job["metadata"]["name"],
            "uid": cron_job["metadata"]["uid"],
            "controller": True,
        }
        annotations = {"cronjob.kubernetes.io/instantiate": "manual", **meta.get("annotations", {})}
        job_meta = metadata(
            factory,
            name,
            labels=meta.get("labels"),
            annotations=annotations,
            ownerReferences=[owner],
        )
        return {
            "kind": "Job",
            "apiVersion": "batch/v1",
            "metadata": job_meta,
            "spec": template["spec"],
            "status": {},
        }

    spec = {"template": _run_once(name, options.image, command, "Never")}
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": metadata(factory, name),
        "spec": spec,
        "status": {},
    }


def _run_once(name: str, image: str, command: list[str], restart: str) -> Object:
    return {
        "metadata": {},
        "spec": {"containers": [container(name, image, command)], "restartPolicy": restart},
    }


class CreateCronjobOptions(GeneratorOptions):
    """The flags of ``create cronjob``."""

    image: str = string_flag("image", help="Image name to run.")
    schedule: str = string_flag(
        "schedule", help="A schedule in the Cron format the job should be run with."
    )
    restart: str = string_flag(
        "restart", help="The job's restart policy: OnFailure (default) or Never."
    )
    checks_name = False
    required = (
        "image",
        "schedule",
    )


@generator(
    "cronjob NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...]",
    CreateCronjobOptions,
    failure="failed to create cronjob: ",
    examples="""
# A job every night
kubepy create cronjob nightly --image=busybox --schedule='0 3 * * *'

# Every five minutes, with a command
kubepy create cronjob ping --image=busybox --schedule='*/5 * * * *' -- ping -c1 db
""",
)
def cronjob(factory: Factory, options: CreateCronjobOptions, name: str) -> Object:
    """Create a cron job with the specified name."""
    template = _run_once(
        name, options.image, options.container_command(), options.restart or "OnFailure"
    )
    spec = {
        "schedule": options.schedule,
        "jobTemplate": {"metadata": {"name": name}, "spec": {"template": template}},
    }
    return {
        "kind": "CronJob",
        "apiVersion": "batch/v1",
        "metadata": metadata(factory, name),
        "spec": spec,
        "status": {},
    }


# --- policy ---------------------------------------------------------------------------------------


class CreateQuotaOptions(GeneratorOptions):
    """The flags of ``create quota``."""

    hard: str = string_flag(
        "hard", help="A comma-delimited set of resource=quantity pairs that define a hard limit."
    )
    scopes: str = string_flag(
        "scopes",
        help="A comma-delimited set of quota scopes that must all match each object tracked.",
    )


@generator(
    "quota NAME [--hard=key1=value1,key2=value2] [--scopes=Scope1,Scope2]",
    CreateQuotaOptions,
    failure="failed to create quota: ",
    examples="""
# At most three pods
kubepy create quota small --hard=pods=3

# At most ten pods without resource requests
kubepy create quota best-effort --hard=pods=10 --scopes=BestEffort
""",
)
def quota(factory: Factory, options: CreateQuotaOptions, name: str) -> Object:
    """Create a resource quota with the specified name, hard limits, and optional scopes."""
    spec: Object = {}
    if options.hard:
        spec["hard"] = {}
        for part in options.hard.split(","):
            key, equals, value = part.partition("=")
            if not equals or "=" in value:
                raise CliError(
                    printable(f"Invalid argument syntax {part}, expected <resource>=<value>")
                )
            try:
                spec["hard"][key] = str(quantities.parse_quantity(value))
            except quantities.QuantityError as error:
                raise CliError(str(error)) from None

    if options.scopes:
        spec["scopes"] = options.scopes.split(",")
        if "" in spec["scopes"]:
            raise CliError('invalid resource quota scope ""')

    return {
        "kind": "ResourceQuota",
        "apiVersion": "v1",
        "metadata": metadata(factory, name),
        "spec": spec,
        "status": {},
    }


class CreatePoddisruptionbudgetOptions(GeneratorOptions):
    """The flags of ``create poddisruptionbudget``."""

    min_available: str = string_flag(
        "min-available",
        help="The minimum number or percentage of available pods this budget requires.",
    )
    max_unavailable: str = string_flag(
        "max-unavailable",
        help="The maximum number or percentage of unavailable pods this budget requires.",
    )
    selector: str = string_flag(
        "selector", help="A label selector to use for this budget; only equality is supported."
    )


@generator(
    "poddisruptionbudget NAME --selector=SELECTOR --min-available=N",
    CreatePoddisruptionbudgetOptions,
    failure="failed to create poddisruptionbudgets: ",
    examples="""
# Keep at least two of the pods labelled app=web
kubepy create poddisruptionbudget web --selector=app=web --min-available=2

# Lose at most one of the pods of a database at a time
kubepy create pdb store --selector=app=store --max-unavailable=1

# Keep three quarters of the pods of a tier, whichever workloads they belong to
kubepy create pdb front --selector=tier=front --min-available=75%

# Print what would be created
kubepy create pdb batch --selector=app=batch --max-unavailable=50% --dry-run=client -o yaml
""",
)
def poddisruptionbudget(
    factory: Factory, options: CreatePoddisruptionbudgetOptions, name: str
) -> Object:
    """Create a pod disruption budget with the specified name, selector, and desired minimum available pods."""  # noqa: E501
    if not options.selector:
        raise CliError("a selector must be specified")
    if not options.max_unavailable and not options.min_available:
        raise CliError("one of min-available or max-unavailable must be specified")
    if options.max_unavailable and options.min_available:
        raise CliError("min-available and max-unavailable cannot be both specified")
    field, flag = (
        ("minAvailable", "min-available")
        if options.min_available
        else ("maxUnavailable", "max-unavailable")
    )
    value = options.min_available or options.max_unavailable
    if not re.fullmatch(r"[0-9]+%?", value):
        raise CliError(f"invalid format specified for {flag}")
    number = int_or_none(value, 32)
    try:
        selector = selectors.parse_to_label_selector(options.selector)
    except selectors.SelectorError as error:
        raise CliError(str(error)) from None

    spec: Object = {field: value if number is None else number, "selector": selector}
    if field == "maxUnavailable":
        spec = dict(reversed(spec.items()))
    status = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    return {
        "kind": "PodDisruptionBudget",
        "apiVersion": "policy/v1",
        "metadata": metadata(factory, name),
        "spec": spec,
        "status": status,
    }


class CreatePriorityclassOptions(GeneratorOptions):
    """The flags of ``create priorityclass``."""

    value: int = int_flag("value", bits=32, help="The value of this priority class.")
    global_default: bool = bool_flag(
        "global-default",
        help="Whether this PriorityClass should be considered as the default priority.",
    )
    description: str = string_flag("description", help="When this priority class should be used.")
    preemption_policy: str = string_flag(
        "preemption-policy",
        default="PreemptLowerPriority",
        help="The policy for preempting pods with lower priority.",
    )
    checks_name = False


@generator(
    "priorityclass NAME --value=VALUE --global-default=BOOL",
    CreatePriorityclassOptions,
    failure="failed to create priorityclass: ",
    examples="""
# For pods that others make room for
kubepy create priorityclass urgent --value=100000 --description="what customers see"

# For all pods that name no class
kubepy create priorityclass ordinary --value=100 --global-default --description="everything else"

# For pods that go first in the queue, but drive no pods from their nodes
kubepy create priorityclass patient --value=100000 --preemption-policy=Never
""",
)
def priorityclass(factory: Factory, options: CreatePriorityclassOptions, name: str) -> Object:
    """Create a priority class with the specified name, value, globalDefault and description."""
    obj: Object = {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name},
        "value": options.value,
    }
    if options.global_default:
        obj["globalDefault"] = True
    if options.description:
        obj["description"] = options.description
    return {**obj, "preemptionPolicy": options.preemption_policy}
