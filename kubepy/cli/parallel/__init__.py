"""The runs of a plan or a fuzz, shared by processes, an executor, or the workers of other machines.

``runmaker`` hands out parts, and puts what comes back in order; ``processes`` and ``daskcluster``
have the workers; ``commandfiles`` are the files that commands read, which go with them.
"""
