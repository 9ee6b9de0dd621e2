"""Nodes (``pkg/registry/core/node``)."""
