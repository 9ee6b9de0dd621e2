"""Services (``pkg/registry/core/service``)."""
