"""Fuzz: the search for the schedule that breaks a workload.

``checks`` says what must hold in each run, and judges it after each write.
"""
