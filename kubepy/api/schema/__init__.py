"""Schemas: the OpenAPI of built-in types (:mod:`openapi`), and those of CustomResourceDefinitions
(the others)."""
