"""A Kubernetes cluster that is a folder of YAML files, kubectl's command line for it, and both for
Python programs.

``from kubepy import Cluster`` is for programs; docs/python.md describes it. The names below are
imported when they are first used: the command line needs none of them.
"""

# Type checkers know better; importing typing would cost more than all else here.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from kubepy.api.errors import (
        AlreadyExists,
        BadRequest,
        Conflict,
        Expired,
        Forbidden,
        Invalid,
        MethodNotAllowed,
        NotFound,
        TooManyRequests,
        UnsupportedMediaType,
    )
    from kubepy.api.errors import Status as ApiError
    from kubepy.clusters import Cluster, CommandError
    from kubepy.decorators import cluster
    from kubepy.insight.why import Why
    from kubepy.results import CommandResult, ScriptResult
    from kubepy.storage.errors import FolderError, LockTimeoutError, NoClusterError

__version__ = "0.5.0.dev0"
KUBERNETES_VERSION = "v1.36.0"
KUSTOMIZE_VERSION = "v5.8.1"  # the one whose kustomizations are understood

__all__ = [
    "KUBERNETES_VERSION",
    "KUSTOMIZE_VERSION",
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "Cluster",
    "CommandError",
    "CommandResult",
    "Conflict",
    "Expired",
    "FolderError",
    "Forbidden",
    "Invalid",
    "LockTimeoutError",
    "MethodNotAllowed",
    "NoClusterError",
    "NotFound",
    "ScriptResult",
    "TooManyRequests",
    "UnsupportedMediaType",
    "Why",
    "__version__",
    "cluster",
]

_MODULES = {
    "Cluster": "clusters",
    "CommandError": "clusters",
    "CommandResult": "results",
    "FolderError": "storage",
    "LockTimeoutError": "storage",
    "NoClusterError": "storage",
    "ScriptResult": "results",
    "Why": "insight.why",
    "cluster": "decorators",
}


def __getattr__(name: str) -> object:
    """Import a public name; those that no other module has are errors of the API."""
    if name not in __all__:
        raise AttributeError(f"module 'kubepy' has no attribute {name!r}")
    from importlib import import_module

    module_name = _MODULES.get(name, "api.errors")
    module = import_module(f"kubepy.{module_name}")
    name_there = "Status" if name == "ApiError" else name
    value: object = getattr(module, name_there)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
