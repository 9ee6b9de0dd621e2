"""Pod templates, alone and in workloads (``pkg/registry/core/podtemplate``)."""
