"""Run the GitHub Action for real: its scripts in their order, with a kubepy that they install from
this repository, on a repository with two pull requests. `make try-action`; it takes a minute.

tests/test_action.py tries each case, with a kubepy that records how it is called.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from threading import Thread

from tests.test_action import PROJECT, Comments, Runner, git

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {%s}
      containers: [{name: web, image: "web:%d"}]
"""


def real_runner(folder: Path, server: Comments) -> Runner:
    """Return a runner with the programs of this machine, and a clone of this repository's commit
    as the action."""
    runner = Runner(folder, server)
    action = folder / "action"
    git(folder, "clone", "--quiet", str(PROJECT), str(action))
    runner.environment |= {"PATH": os.environ["PATH"], "GITHUB_ACTION_PATH": str(action)}
    del runner.environment["PYTHONPATH"]
    return runner


def propose(runner: Runner, selector: str, image: int) -> None:
    """Commit the manifest, as the head of a pull request upon the commit before."""
    runner.variables["github.event.pull_request.base.sha"] = git(
        runner.checkout, "rev-parse", "HEAD"
    )
    path = runner.checkout / "deploy/web.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(MANIFEST % (selector, image))
    git(runner.checkout, "add", "--all")
    git(runner.checkout, "commit", "--quiet", "--message=change")


def plan(runner: Runner, wanted: int) -> None:
    """Run the action. Raises SystemExit where its status is not the wanted one."""
    status = runner.run_action()
    if status != wanted:
        raise SystemExit(f"{runner.log}\nerror: exit status {status} in place of {wanted}")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, Comments() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        runner = real_runner(Path(scratch), server)
        (runner.checkout / "kubepy-plan.yaml").unlink()
        propose(runner, "", 1)
        propose(runner, "", 2)
        plan(runner, 0)
        propose(runner, "disk: ssd", 3)
        plan(runner, 2)
        server.shutdown()
        thread.join()

    (comment,) = server.bodies
    print(comment["body"])
    if "does not finish" not in comment["body"].lower():
        raise SystemExit("error: the comment does not say that it does not finish")


if __name__ == "__main__":
    main()
