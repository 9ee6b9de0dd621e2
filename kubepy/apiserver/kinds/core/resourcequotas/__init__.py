"""ResourceQuotas (``pkg/registry/core/resourcequota``)."""
