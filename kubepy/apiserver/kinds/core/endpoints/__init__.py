"""Endpoints (``pkg/registry/core/endpoint``)."""
