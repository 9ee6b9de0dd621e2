"""``kubepy mcp``: the cluster as tools of the Model Context Protocol, for agents.

    command.py    the command: its flags, what it needs, the cluster that it serves
    server.py     the protocol, by the library ``mcp``: lists tools, answers calls
    tools.py      the tools: their arguments, and the command lines that they stand for
    workers.py    starts a process for each cluster that commands run on, and ends it in time
    worker.py     that process: opens the cluster, forks it in memory, runs command lines
    permitted.py  which commands, flags and files may be asked for
    sandbox.py    what such a process may do on this machine, whatever it is asked for

Whoever calls the tools is not trusted. ``permitted`` decides by lists of what is allowed, and
answers with the reason for a refusal; ``sandbox`` holds where that list has a mistake. Both are in
the worker, which runs exactly the words that were checked.
"""
