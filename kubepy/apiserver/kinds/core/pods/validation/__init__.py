"""Pods and pod templates: what a pod may say, when it is made and later; part of
``ValidatePodSpec`` a module."""
