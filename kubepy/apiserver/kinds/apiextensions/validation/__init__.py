"""Validation of CustomResourceDefinitions: their names and versions, schemas, and rules."""
