"""Fault injection into storage: ``python -m tests.torture`` (``make torture``).

kill      a process killed at every call that changes something
power     power cut after every such call, in two models of what a disk forgets
restart   the machine started anew after commands that ended normally, and files changed meanwhile
damage    a damaged index
edits     files edited while commands of several processes run
linear    eight writers and readers over a few objects, their histories checked for linearizability
served    clients and watchers of ``kubepy serve`` while it is killed, and files change under it
histories random histories of writes beside a manager that restarts and fails
pairs     two writes that follow each other at once, beside controllers in another process
etcd      the same histories over etcd, with watchers, while processes or etcd are killed

Every section names its points, so that each can be repeated alone; a loss is printed with the
command that repeats it.
"""
