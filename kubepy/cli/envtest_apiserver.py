"""The program ``kube-apiserver`` of envtest's assets, with the command line that it runs for plans.

``python -m kubepy.cli.envtest_apiserver CONTROLLERS FLAGS…``; what it does is said in
:mod:`kubepy.server.envtest.apiserver`.
"""

from __future__ import annotations

import sys

from kubepy.cli.inner_commands import runner
from kubepy.cli.main import main
from kubepy.server.envtest import apiserver

if __name__ == "__main__":
    sys.exit(apiserver.main(sys.argv[1:], runner(main)))
