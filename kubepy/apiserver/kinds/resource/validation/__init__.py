"""Validation of devices and of claims to them (``pkg/apis/resource/validation``)."""
