#!/bin/sh
# Builds core and kernels for 64-bit Arm and runs their tests under qemu-user: proves that nothing below the models
# leans on x86. Installs what is missing (Debian, needs root for that). Usage: scripts/test_aarch64.sh [ctest options]
set -eu
cd "$(dirname "$0")/.."

missing=""
for package in g++-aarch64-linux-gnu qemu-user googletest libfmt-dev nlohmann-json3-dev libhwy-dev cmake ninja-build; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -n "$missing" ]; then
  echo "installing$missing"
  # shellcheck disable=SC2086
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
fi

cmake -G Ninja -S . -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS_RELEASE=-O3 "-DLIULI_ONLY_FOLDERS=core;kernels"
cmake --build build/aarch64
ctest --test-dir build/aarch64 --output-on-failure "$@"
