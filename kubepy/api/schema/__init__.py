"""Schemas: the OpenAPI of built-in types, and that of CustomResourceDefinitions."""
