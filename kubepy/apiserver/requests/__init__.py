"""Requests that read or change one object: decode, prepare, admit, validate, and store in a
transaction.

A module for each verb, one for each subresource that works in its own way, and ``handwritten`` for
files that others write into the folder. Upstream: ``apiserver/pkg/endpoints/handlers``,
``apiserver/pkg/registry``.
"""
