"""Validation of storage classes and of CSI kinds (``pkg/apis/storage/validation``)."""
