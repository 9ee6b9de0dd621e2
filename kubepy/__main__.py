"""``python -m kubepy``: the same as ``kubepy``."""

import sys

from kubepy.cli.program import run

sys.exit(run())
