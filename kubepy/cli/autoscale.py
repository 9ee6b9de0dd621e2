"""``kubepy autoscale``. Upstream: ``kubectl/pkg/cmd/autoscale/autoscale.go``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.create.objects import create_generated, metadata
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    filename_flags,
    output_flags,
    record_flag,
    save_config_flag,
)
from kubepy.cli.runtime.infos import Info, resource_text
from kubepy.cli.runtime.objects import record
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api import errors as api_errors

FLAGS = [
    integer("min", default=-1, bits=32, help="The lower limit for the number of pods that can be set by the "
            "autoscaler."),
    integer("max", default=-1, bits=32, help="The upper limit for the number of pods that can be set by the "
            "autoscaler. Required."),
    integer("cpu-percent", default=-1, bits=32, deprecated="Use --cpu with percentage or resource quantity format "
            "(e.g., '70%' for utilization or '500m' for milliCPU)."),
    string("cpu", help="Target CPU: a percentage of what is requested (70%), or an average value (500m; without a unit "
           "in thousandths)."),
    string("memory", help="Target memory: a percentage of what is requested (60%), or an average value (200Mi; without "
           "a unit in mebibytes)."),
    string("name", help="The name for the newly created object. Default: the name of the resource."),
    *filename_flags("identifying the resource to autoscale."),
    *output_flags(),
    dry_run_flag(),
    save_config_flag(),
    field_manager_flag("kubectl-autoscale"),
    record_flag(),
]
UNITS = {"cpu": "m", "memory": "Mi"}


@verb("autoscale", "autoscale (-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS [--cpu=CPU]",
      flags=FLAGS, examples="""
# Between two and ten pods
kubepy autoscale deploy/web --min=2 --max=10 --cpu=80%

# By what memory the pods use on average
kubepy autoscale deploy/web --max=5 --memory=200Mi
""")
def autoscale(factory: Factory, given: Invocation) -> None:
    """Create an autoscaler that chooses and sets the number of pods of a deployment, replica set or stateful set.

    Nothing measures load here, so that nothing scales by itself."""
    given.require("max")
    strategy = dry_run(factory, given)
    validate(given)
    seen = 0

    def autoscale_one(info: Info) -> None:
        nonlocal seen
        seen += 1
        if "scale" not in info.resource.subresources:
            raise CliError(f"cannot autoscale a {info.resource.kind}: could not find scale subresource for "
                           f"{resource_text(info.resource)} in discovery information")
        operation = "created" if strategy == CLIENT else "autoscaled"
        try:
            create_generated(factory, given, lambda: _recorded(factory, given, info), "", operation,
                             strategy=strategy)
        except api_errors.Status as error:
            raise _refused(given, error) from None

    find(factory, given).visit(autoscale_one)
    if not seen:
        raise CliError("no objects passed to autoscale")


def _recorded(factory: Factory, given: Invocation, info: Info) -> Object:
    made = autoscaler(factory, given, info)
    if given.record:
        record(made, given)
    return made


def _refused(given: Invocation, error: Exception) -> Exception:
    """What is told of an autoscaler that the API refuses: where version 1 could hold it kubectl goes on to try that
    one, and the answer is the same; where it could not, the answer is lost."""
    why = ""
    if not given.cpu:
        why = "empty input"
    elif given.memory or not (given.cpu.endswith("%") or given.cpu_percent >= 0):
        why = "%!w(<nil>)"
    return CliError("failed to create autoscaling/v2 HPA and the configuration is incompatible with autoscaling/v1: "
                    f"{why}") if why else error


def validate(given: Invocation) -> None:
    if given.max < 1:
        raise CliError(f"--max=MAXPODS is required and must be at least 1, max: {given.max}")
    if given.max < given.min:
        raise CliError(f"--max=MAXPODS must be larger or equal to --min=MINPODS, max: {given.max}, min: {given.min}")
    if given.cpu_percent > 0 and given.cpu:
        raise CliError("--cpu-percent and --cpu are mutually exclusive")
    for name in UNITS:
        if given.flag(name):
            metric(name, given.flag(name))


def autoscaler(factory: Factory, given: Invocation, info: Info) -> Object:
    target = {"kind": info.resource.kind, "name": info.name, "apiVersion": info.resource.api_version}
    spec: Object = {"scaleTargetRef": target}
    if given.min > 0:
        spec["minReplicas"] = given.min
    spec["maxReplicas"] = given.max
    percent = f"{given.cpu_percent}%" if given.cpu_percent > 0 else ""
    metrics = [metric(name, text) for name, text in (("cpu", percent or given.cpu), ("memory", given.memory)) if text]
    if metrics:
        spec["metrics"] = metrics
    return {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
            "metadata": metadata(factory, given.flag("name") or info.name), "spec": spec,
            "status": {"desiredReplicas": 0, "currentMetrics": None}}


def metric(name: str, text: str) -> Object:
    """One target of an autoscaler. Raises CliError."""
    return {"type": "Resource", "resource": {"name": name, "target": _target(name, text)}}


def _target(name: str, text: str) -> Object:
    from kubepy.api.values.quantity import QuantityError, parse_quantity

    if text.endswith("%"):
        percent = text.removesuffix("%")
        utilization = int_or_none(percent, 32)
        if utilization is None or utilization < 0:
            raise CliError(f"invalid percentage value: {percent}")
        return {"type": "Utilization", "averageUtilization": utilization}
    quantity = _with_unit(name, text)
    try:
        return {"type": "AverageValue", "averageValue": str(parse_quantity(quantity))}
    except QuantityError:
        raise CliError(printable(f"invalid resource {name} value: {text}")) from None


def _with_unit(name: str, text: str) -> str:
    """A bare number is one of thousandths or of mebibytes."""
    try:
        return f"{float(text):g}{UNITS[name]}"
    except ValueError:
        return text
