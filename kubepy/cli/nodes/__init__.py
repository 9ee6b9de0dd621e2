"""Commands for nodes: ``cordon``, ``drain``, ``taint``."""
