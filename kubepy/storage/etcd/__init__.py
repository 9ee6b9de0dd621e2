"""The store in etcd: keys and values as a kube-apiserver writes them.

address.py    what ``--state etcd://…`` says
client.py     etcd's API: ranges, transactions, watches, leases
keys.py       a key of the store to and from a key of etcd
values.py     an object to and from the bytes of a value
"""
