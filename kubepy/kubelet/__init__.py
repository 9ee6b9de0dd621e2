"""The simulated kubelet: plays the life of nodes and pods.

A node that reports nothing becomes Ready (``nodes``). The life of a pod is a table of ``stages``:
the first one that applies says which step is due. The outcome of a pod, chosen by annotations
(docs/kubelet.md), is another table (``outcomes``), which ``statuses`` turns into the status that a
kubelet reports. Some things keep containers from starting whatever their outcome (``obstacles``). A
pod that names its node, past the scheduler, must be admitted first (``admission``). ``controller``
alone writes, and at transitions only, so that a status set by hand stays. What is known of a
container beside its manifest, from rules and well-known images (docs/rules.md), ``behaviours``
says. Pods that do what their manifests say live in ``modelled``; ``inside`` opens their containers,
``sessions`` talks with their processes.
"""
