#!/usr/bin/env bash
# Installs the Debian packages that Liuli needs and this machine lacks. Where nothing is missing it says and does nothing.
#
#   setup.sh            what building and running takes
#   setup.sh python     also what pip install . takes (Python's headers and virtual environments)
#   setup.sh test       also what scripts/test.sh takes (Python as above, PyTorch, GoogleTest, clang-format, a cross compiler and an emulator for Arm)
#
# LIULI_NO_SETUP=1: nothing is installed or looked for (the machine has what it needs under other names).
set -euo pipefail
[ -z "${LIULI_NO_SETUP:-}" ] || exit 0

wanted=(g++ cmake ninja-build libfmt-dev nlohmann-json3-dev libcli11-dev libhwy-dev libutf8proc-dev libpcre2-dev python3)
python3 -m pip --version >/dev/null 2>&1 || wanted+=(python3-pip)
case ${1:-} in
  "") ;;
  python) wanted+=(python3-dev python3-venv) ;;
  test) wanted+=(python3-dev python3-venv libgtest-dev clang-format-14 g++-aarch64-linux-gnu qemu-user googletest) ;;
  *) echo "setup.sh: unknown argument '$1'; known: python, test" >&2; exit 2 ;;
esac

if [ "${1:-}" = test ]; then  # the tour's page: a Node or a browser from elsewhere will do
  command -v npm >/dev/null || wanted+=(nodejs npm)
  [ -x "${CHROMIUM:-/usr/bin/chromium}" ] || wanted+=(chromium)
  wanted+=(fonts-noto-cjk)
  [ -n "${LIULI_TORCH_PYTHON:-}" ] || wanted+=(python3-torch)  # tests/transformers; 150 MB, CPU only
fi

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
missing=()
for package in "${wanted[@]}"; do installed "$package" || missing+=("$package"); done
[ ${#missing[@]} -gt 0 ] || exit 0

fail() {
  echo "setup.sh: $1; these Debian 12 packages are needed: ${missing[*]}" >&2
  echo "(LIULI_NO_SETUP=1 goes on without looking for them)" >&2
  exit 1
}
command -v apt-get >/dev/null || fail "there is no apt-get here"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "installing takes root, and there is no sudo"
  as_root=(sudo)
fi
echo "installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }
# A failed update is not the end: the lists that are there may do.
apt update -qq || echo "setup.sh: apt-get update failed (no network?); trying with the lists at hand" >&2
apt install -y -qq --no-install-recommends "${missing[@]}" || { grep '^E:' "$log" >&2 || true; fail "apt-get install failed"; }
