"""Somebody's cluster, taken in with ``kubepy import``.

| module | subject |
| --- | --- |
| ``files`` | the files of a source: a path, a folder of any depth, an archive, standard input |
| ``documents`` | the objects in a file, and the logs of pods |
| ``layouts`` | what the places of files tell in the dumps that people have |
| ``live`` | a running cluster, asked through the kubectl on the PATH |
| ``places`` | an etcd |
| ``conversion`` | objects in older API versions |
| ``taking`` | the choice of what can be taken, and what cannot with its reason |
| ``absent`` | what the objects name and the source does not hold |
| ``contents`` | what namespaces that are being deleted have and the source does not hold |
| ``nodes``, ``replicasets``, ``revisions``, ``derived`` | what a source leaves out and tells of |
| ``secrets`` | values of Secrets, and what stands for them |
| ``times`` | the newest time of a source, which becomes the cluster's |
| ``podlogs`` | logs as the cluster keeps them |
| ``learning`` | the rules by which pods go on doing what they did |
| ``evidence`` | the containers of a source, and what is known of each |
| ``failures``, ``durations``, ``measured`` | how they fail; how long things take; what they use |
| ``replay`` | what the model would have made of them |
| ``rulecomments`` | the comments above learned rules |
| ``making``, ``writing`` | the cluster of all that, in memory and in its place |
| ``merging``, ``heldkeys`` | a later state of the same cluster, as one change |
| ``words`` | the words in which messages name things |
| ``unread`` | the resources that could not be read, of which nothing is removed |
| ``report`` | what the import says at its end |
"""
