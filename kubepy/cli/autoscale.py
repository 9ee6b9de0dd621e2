"""``kubepy autoscale``. Upstream: ``kubectl/pkg/cmd/autoscale/autoscale.go``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.create.objects import CreatedOptions, create_generated, metadata
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag, string_flag
from kubepy.cli.runtime.infos import Info, resource_text
from kubepy.cli.runtime.objects import record
from kubepy.cli.runtime.options import (
    CLIENT,
    KustomizeOptions,
    RecordOptions,
    SaveConfigOptions,
    field_manager_flag,
    filename_flag,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api.values import quantity as quantities


class AutoscaleOptions(CreatedOptions, KustomizeOptions, SaveConfigOptions, RecordOptions):
    """The flags of ``autoscale``."""

    min: int = int_flag(
        "min",
        default=-1,
        bits=32,
        help="The lower limit for the number of pods that can be set by the autoscaler.",
    )
    max: int = int_flag(
        "max",
        default=-1,
        bits=32,
        help="The upper limit for the number of pods that can be set by the autoscaler. Required.",
    )
    cpu_percent: int = int_flag(
        "cpu-percent",
        default=-1,
        bits=32,
        deprecated="Use --cpu with percentage or resource "
        "quantity format (e.g., '70%' for utilization or '500m' for milliCPU).",
    )
    cpu: str = string_flag(
        "cpu",
        help="Target CPU: a percentage of what is requested (70%), or an average value "
        "(500m; without a unit in thousandths).",
    )
    memory: str = string_flag(
        "memory",
        help="Target memory: a percentage of what is requested (60%), or an average "
        "value (200Mi; without a unit in mebibytes).",
    )
    name: str = string_flag(
        "name", help="The name for the newly created object. Default: the name of the resource."
    )
    filename: list[str] = filename_flag("identifying the resource to autoscale.")
    field_manager: str = field_manager_flag("kubectl-autoscale")


UNITS = {"cpu": "m", "memory": "Mi"}


@command(
    "autoscale (-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS [--cpu=CPU]",
    AutoscaleOptions,
    examples="""
# Between two and ten pods
kubepy autoscale deploy/web --min=2 --max=10 --cpu=80%

# By what memory the pods use on average
kubepy autoscale deploy/web --max=5 --memory=200Mi
""",
)
def autoscale(factory: Factory, options: AutoscaleOptions) -> None:
    """Create an autoscaler that chooses and sets the number of pods of a deployment, replica set or stateful set.

    Pods use the cpu and memory that their annotations kubepy.dev/cpu and kubepy.dev/memory say."""  # noqa: E501
    options.require("max")
    strategy = factory.dry_run_strategy(options)
    validate(options)
    count = 0

    def autoscale_one(info: Info) -> None:
        nonlocal count
        count += 1
        if "scale" not in info.resource.subresources:
            raise CliError(
                f"cannot autoscale a {info.resource.kind}: could not find scale subresource for "
                f"{resource_text(info.resource)} in discovery information"
            )

        def generated() -> Object:
            obj = autoscaler(factory, options, info)
            if options.record:
                record(obj, options)
            return obj

        operation = "created" if strategy == CLIENT else "autoscaled"
        try:
            create_generated(factory, options, generated, operation=operation, strategy=strategy)
        except api_errors.Status as error:
            raise _as_reported(options, error) from None

    Builder(factory, options).do().visit(autoscale_one)
    if not count:
        raise CliError("no objects passed to autoscale")


def _as_reported(options: AutoscaleOptions, error: Exception) -> Exception:
    """Return the error that kubectl reports for an autoscaler that the API refuses.

    Where autoscaling/v1 could hold the autoscaler, kubectl tries that version next, and gets the
    same answer; where it could not, kubectl loses the answer.
    """
    reason = ""
    if not options.cpu:
        reason = "empty input"
    elif options.memory or not (options.cpu.endswith("%") or options.cpu_percent >= 0):
        reason = "%!w(<nil>)"
    if reason:
        return CliError(
            "failed to create autoscaling/v2 HPA and the configuration is incompatible with "
            "autoscaling/v1: "
            f"{reason}"
        )
    return error


def validate(options: AutoscaleOptions) -> None:
    if options.max < 1:
        raise CliError(f"--max=MAXPODS is required and must be at least 1, max: {options.max}")
    if options.max < options.min:
        raise CliError(
            f"--max=MAXPODS must be larger or equal to --min=MINPODS, max: {options.max}, min: "
            f"{options.min}"
        )
    if options.cpu_percent > 0 and options.cpu:
        raise CliError("--cpu-percent and --cpu are mutually exclusive")
    for name, value in (("cpu", options.cpu), ("memory", options.memory)):
        if value:
            metric(name, value)


def autoscaler(factory: Factory, options: AutoscaleOptions, info: Info) -> Object:
    target = {
        "kind": info.resource.kind,
        "name": info.name,
        "apiVersion": info.resource.api_version,
    }
    spec: Object = {"scaleTargetRef": target}
    if options.min > 0:
        spec["minReplicas"] = options.min
    spec["maxReplicas"] = options.max
    percent = f"{options.cpu_percent}%" if options.cpu_percent > 0 else ""
    targets = (("cpu", percent or options.cpu), ("memory", options.memory))
    metrics = [metric(name, text) for name, text in targets if text]
    if metrics:
        spec["metrics"] = metrics
    return {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": metadata(factory, options.name or info.name),
        "spec": spec,
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    }


def metric(name: str, text: str) -> Object:
    """Return one target of an autoscaler. Raises CliError."""
    if text.endswith("%"):
        percent = text.removesuffix("%")
        utilization = int_or_none(percent, 32)
        if utilization is None or utilization < 0:
            raise CliError(f"invalid percentage value: {percent}")
        target: Object = {"type": "Utilization", "averageUtilization": utilization}
    else:
        try:  # a bare number is one of thousandths or of mebibytes
            quantity = f"{float(text):g}{UNITS[name]}"
        except ValueError:
            quantity = text
        try:
            target = {
                "type": "AverageValue",
                "averageValue": str(quantities.parse_quantity(quantity)),
            }
        except quantities.QuantityError:
            raise CliError(printable(f"invalid resource {name} value: {text}")) from None

    return {"type": "Resource", "resource": {"name": name, "target": target}}
