"""Pods (``pkg/registry/core/pod``)."""
