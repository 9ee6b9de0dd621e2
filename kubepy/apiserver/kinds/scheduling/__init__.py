"""The kinds of the group scheduling.k8s.io."""
