#!/usr/bin/env bash
# The main job on a scratch folder: every command with what it printed. `make demo` runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf .demo && mkdir .demo
export KUBEPY_STATE="$PWD/.demo/state"

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

git_quiet() { git -C .demo -c user.name=demo -c user.email=demo@localhost "$@"; }

run kubepy init --nodes 3
run kubepy apply -f manifests/nginx-ds.yaml
run kubepy controller --once
run kubepy get ds,pods -o wide
git_quiet init -q && git_quiet add -A && git_quiet commit -qm "nginx 1.15 everywhere"

run kubepy set image ds/nginx-ds nginx-ds=nginx:1.16
printf '\n$ git diff state/\n'
git_quiet --no-pager diff state/

run kubepy controller --once
run kubepy rollout status ds/nginx-ds
run kubepy get controllerrevision
run kubepy rollout history ds/nginx-ds
run kubepy rollout undo ds/nginx-ds --to-revision=1
run kubepy rollout status ds/nginx-ds
run kubepy get pods -o custom-columns=NODE:.spec.nodeName,IMAGE:.spec.containers[0].image
run kubepy delete ds/nginx-ds --cascade=orphan
run kubepy get ds,pods
run kubepy fsck
