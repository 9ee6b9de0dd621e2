"""kubectl's command line for a state folder.

A command is a module: it declares its flags as a class of options, and a function that gets a
``Factory`` (the cluster, the streams) and the options (see ``runtime.command``). ``commands`` is
the catalogue, which imports a module when a command of it is named. ``runtime.builder`` finds the
objects that a command is about, ``runtime.output`` prints them, and ``errors`` is the one place
that turns an exception into kubectl's words and an exit status.
"""
