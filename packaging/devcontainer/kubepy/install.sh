#!/bin/sh
# Install kubepy into a development container, as root: an environment in /usr/local/share/kubepy,
# and links in /usr/local. The options of devcontainer-feature.json come as variables.
set -eu
VERSION=${VERSION:-latest}
EXTRAS=${EXTRAS-serve}
SOURCE=${SOURCE:-}
KUBECTL=${KUBECTL:-false}

python=
for name in python3 /usr/local/python/current/bin/python3; do
  if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
    python=$name
    break
  fi
done
if [ -z "$python" ]; then
  echo "error: kubepy needs python3, 3.11 or newer, with its module venv: take an image of Python, or the feature python" >&2
  exit 1
fi

requirement=kubepy-cluster${EXTRAS:+[$EXTRAS]}
if [ -n "$SOURCE" ]; then
  case $SOURCE in
    *://*) requirement="$requirement @ $SOURCE" ;;
    *) requirement="$requirement @ file://$SOURCE" ;;
  esac
elif [ "$VERSION" != latest ]; then
  requirement=$requirement==$VERSION
fi

environment=/usr/local/share/kubepy
rm -rf "$environment"
"$python" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir "$requirement"

mkdir -p /usr/local/bin /usr/local/share/man/man1 /usr/local/share/bash-completion/completions
for program in kubepy kubectl-kubepy kubectl_complete-kubepy; do
  ln -sf "$environment/bin/$program" "/usr/local/bin/$program"
done
ln -sf "$environment"/share/man/man1/kubepy*.1 /usr/local/share/man/man1/
ln -sf "$environment/share/bash-completion/completions/kubepy" /usr/local/share/bash-completion/completions/kubepy
if [ "$KUBECTL" = true ] && ! command -v kubectl > /dev/null; then
  ln -s "$environment/bin/kubepy" /usr/local/bin/kubectl
fi
kubepy --version
