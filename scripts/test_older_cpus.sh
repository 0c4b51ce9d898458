#!/usr/bin/env bash
# Runs the program and the tests of its kernels as on older x86 CPUs, by qemu-user: without AVX, and with AVX2 but without
# AVX-512. An instruction that such a CPU does not have ends a test here as it would end the program there.
#
#   test_older_cpus.sh FOLDER     a built tree, build/release
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1/bin
[ "$(uname -m)" = x86_64 ] || { echo "no x86 machine: nothing to run"; exit 0; }

run_as() {  # run_as CPU LEVEL TEST…: the level that must be chosen there, then the tests
  local cpu=$1 level=$2 log
  shift 2
  log=$(mktemp)
  trap 'rm -f "$log"' RETURN
  # (The emulator lists on standard error what of the CPU it lacks itself.)
  qemu-x86_64 -cpu "$cpu" "$bin/liuli" plan tests/golden/tiny/llama >"$log" 2>/dev/null || { echo "$cpu: liuli plan ended with $?"; return 1; }
  grep -q "^instruction set   $level " "$log" || { echo "$cpu: not $level, but $(grep '^instruction set' "$log")"; return 1; }
  for test in "$@"; do
    qemu-x86_64 -cpu "$cpu" "$bin/$test" --gtest_brief=1 >"$log" 2>&1 || { echo "$cpu: $test ended with $?"; tail -20 "$log"; return 1; }
    echo "$cpu ($level): $test passed"
  done
}

kernels=(dispatch_test rows_test weights_test machine_limits_test)
run_as Nehalem scalar "${kernels[@]}" &
run_as Haswell avx2 "${kernels[@]}" tiny_golden_test
wait $!
