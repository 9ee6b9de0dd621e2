"""The store in etcd: keys and values as a kube-apiserver writes them.

address.py    what ``--state etcd://…`` says
client.py     etcd's API: ranges, transactions, watches, leases
keys.py       a key of the store to and from a key of etcd
values.py     an object to and from the bytes of a value
ownkeys.py    what kubepy keeps beside the objects: settings, small values, timeline, locks
keyspace.py   the place of one cluster: a client and its keys
store.py      EtcdStore
commit.py     a transaction: one object after the other
writeorder.py for which objects it matters in which order they are written
source.py     everything at one revision, read when it is asked for
following.py  everything in memory, following a watch
history.py    the changes between two revisions
rest.py       the newest revisions that have written no object
compaction.py forgets what is older than some minutes
leases.py     named locks, and leases of objects that are over after a while
copying.py    the copy of another store's state: ``kubepy fork``
"""
