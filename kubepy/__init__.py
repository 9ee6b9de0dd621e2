"""A Kubernetes cluster that is a folder of YAML files, and kubectl's command line for it."""

__version__ = "0.1.0"
KUBERNETES_VERSION = "v1.36.0"
KUSTOMIZE_VERSION = "v5.8.1"  # the one whose kustomizations are understood
