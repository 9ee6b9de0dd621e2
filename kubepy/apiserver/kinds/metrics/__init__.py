"""The kinds of the group metrics.k8s.io."""
