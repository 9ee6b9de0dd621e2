"""kubectl's command line for a state folder.

A verb is a file: it declares its flags with :func:`kubepy.cli.command.verb` and gets a ``Factory`` (the cluster, the
streams) and an ``Invocation`` (its arguments and flags). ``commands`` maps names to modules, so that a command imports
only what it needs; ``resources`` finds the objects it is about, ``output`` prints them, and ``errors`` is the one place
that turns what was raised into kubectl's words and an exit status.
"""
