"""The Common Expression Language, as far as the rules of CustomResourceDefinitions use it.

``parser`` makes a tree of an expression, ``checker`` finds what cannot be right about it from the types of a schema,
``interpreter`` evaluates it. ``operators`` and the files of ``library`` hold the functions of the language and those
that Kubernetes adds; ``rules`` applies the ``x-kubernetes-validations`` of a schema to an object. ``cost`` has what
evaluations cost and may cost, ``estimate`` works out what a rule can cost by the ``sizes`` of its schema. Written by
the language's specification (github.com/google/cel-spec). Not here: protobuf messages and the authorizer.
"""
