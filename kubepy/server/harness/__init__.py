"""The endpoints for test harnesses below ``/kubepy/``, which no API server has: forks, reset, time,
plans and diagnoses. docs/harnesses.md describes them.

``endpoints`` answers, ``bodies`` reads what is asked for, ``forks`` keeps the forks and serves each
of them as a cluster of its own.
"""
