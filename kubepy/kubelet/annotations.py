"""The annotations that steer the simulated kubelet."""

OUTCOME = "kubepy.dev/outcome"  # of a pod: one of the outcomes; of a node: not-ready
TERMINATION = "kubepy.dev/termination"  # of a pod: stuck
POD_OUTCOME = "kubepy.dev/pod-outcome"  # of a node: the outcome of pods there that name none
