"""Custom resources: one strategy, one validation and one printer for the kinds of all
CustomResourceDefinitions (``apiextensions-apiserver/pkg/registry/customresource``)."""
