"""The kinds of the core group (``pkg/registry/core``, ``pkg/apis/core``)."""
