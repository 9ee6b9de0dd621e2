"""LimitRanges (``pkg/registry/core/limitrange``)."""
