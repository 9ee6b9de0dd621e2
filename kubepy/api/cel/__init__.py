"""The Common Expression Language, as far as Kubernetes' rules, admission policies and webhooks use
it.

``parser`` makes a tree (``syntax``) of an expression, ``checker`` checks it by the types of its
variables, and ``interpreter`` evaluates it. The functions of the language are in ``operators`` and
``times``, those of cel-go's extensions and of Kubernetes in ``strings``, ``lists``, ``quantities``
and ``addresses``. ``rules`` applies the ``x-kubernetes-validations`` of a schema to an object,
whose types and values are those of ``schemas``. ``cost`` has the costs and limits of evaluations,
``estimate`` computes the largest cost of a rule from the ``sizes`` of its schema.

Follows the language's specification (github.com/google/cel-spec) and cel-go. Protobuf messages and
the authorizer are missing. Why no library is used: ``docs/decisions/cel.md``.
"""
