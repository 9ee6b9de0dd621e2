"""Measurements of kubepy, each a ratio to a yardstick that is measured in the same run.

``python -m tests.benchmarks`` (``make bench``) measures the table of ``table.py``;
``recorded.json`` keeps its figures, and docs/cost.md shows them. The other modules are programs of
their own, each for one part (``make bench-parts``).
"""
