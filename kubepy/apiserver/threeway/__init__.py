"""Merging two versions of an object that come from one ancestor, as branches of a repository have them.

``values`` merges maps and lists by their schema; ``written`` says what of an object the system writes by itself;
``objects`` merges whole objects, generation and status included; ``managers`` merges managedFields.
"""
