# What a first user does, with kubepy in an environment of its own: first-use.sh BIN VERSION.
# `packaging/release.py try` runs it in an empty folder, with that environment first on the PATH.
bin=$1
version=$2

kubepy --version
kubepy --version | grep --quiet --fixed-strings "kubepy $version (Kubernetes v1.36"
kubepy --state lab init --nodes=3 > /dev/null
kubepy --state lab create deployment web --image=web:1 --replicas=3 > /dev/null
kubepy --state lab rollout status deployment/web | tail -1
kubepy --state lab plan set image deployment/web web=web:2 | tail -1
kubepy --state lab fsck
test "$(kubepy --state lab get pods --no-headers | wc -l)" = 3
kubepy --state lab explain pod.spec &> /dev/null

# kubectl's plugin, the module, the types
kubectl-kubepy --state lab get nodes > /dev/null
"$bin/python" - <<'PYTHON'
from importlib.resources import files

from kubepy import Cluster

assert files("kubepy").joinpath("py.typed").is_file()
with Cluster.temporary(nodes=1) as cluster:
    cluster.run("kubectl create deployment web --image=web:1", check=True)
    cluster.settle()
    assert cluster.client.get("deploy/web")["status"]["readyReplicas"] == 1
PYTHON

# An extra that is missing is named, with the command that installs it.
if kubepy --state lab serve 2> message; then exit 1; fi
grep --quiet 'extra "serve"' message

# Completion and manual pages are where shells and man look.
bash -c ". '$bin/../share/bash-completion/completions/kubepy' && complete -p kubepy" > /dev/null
test -s "$bin/../share/zsh/site-functions/_kubepy"
test -s "$bin/../share/fish/vendor_completions.d/kubepy.fish"
test -s "$bin/../share/man/man1/kubepy-rollout.1"
