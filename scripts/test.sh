#!/usr/bin/env bash
# Installs what the tests need and runs all of them, cheap checks first; ends with the seconds of each stage.
#
#   test.sh                 everything (2 cores: about 20 minutes the first time)
#
# LIULI_FUZZ_RUNS   mutations per fuzz target (2000; the full run is 20000)
# LIULI_MODELS      a folder with models that are already here; LIULI_CACHE: where fetched ones go
set -euo pipefail
cd "$(dirname "$0")/.."

stages=()
stage() {  # stage NAME COMMAND…: runs it, stops everything where it fails
  local name=$1 start=$SECONDS code=0
  shift
  echo "== $name"
  "$@" || code=$?
  stages+=("$(printf '%6d s  %s' $((SECONDS - start)) "$name")")
  [ $code -eq 0 ] || { summary "FAILED in: $name"; exit "$code"; }
}
summary() {
  echo "== seconds per stage"
  printf '%s\n' "${stages[@]}" "$(printf '%6d s  in all' $SECONDS)"
  echo "$1"
}

format_check() {
  find src include tests bench examples python \( -name '*.cpp' -o -name '*.h' \) -print0 |
    xargs -0 clang-format-14 --dry-run -Werror
}
# All models under one folder, whether they came from LIULI_MODELS or from the cache.
models() {
  local paths path
  paths=$(./scripts/fetch_model.py smollm2 qwen2.5 gemma3 minilm tokenizer-llama3 tokenizer-deepseek-v3 \
    tokenizer-gemma3 tokenizer-qwen3)
  mkdir -p build/models
  while read -r path; do ln -sfn "$path" "build/models/$(basename "$path")"; done <<<"$paths"
}
build() {  # build PRESET [TARGET…]
  local preset=$1
  shift
  ninja -C "build/$preset" --quiet "$@"
}

stage "setup" ./scripts/setup.sh test
stage "layers" python3 tools/check_layers.py
stage "format" format_check
stage "models" models
export LIULI_MODELS=$PWD/build/models

stage "configure release" cmake --preset release -DLIULI_TESTS=ON --log-level=WARNING
stage "build release" build release
stage "tests release" ctest --preset release --progress

stage "older CPUs" ./scripts/test_older_cpus.sh build/release
stage "python" tests/python/run.sh build/release
stage "web" tests/web/run.sh build/release
stage "transformers" tests/transformers/run.sh build/release

# Under the sanitizers only what reads foreign bytes: building it all again would take longer than everything before.
readers=(formats_test tokenizers_test chat_template_test)
fuzzers=(replay_gguf replay_model replay_chat_template replay_tokenizer_json replay_safetensors replay_hugging_face replay_panel_file)
asan_tests="^($(IFS='|'; echo "${readers[*]}")|fuzz_.*)\$"
stage "configure asan" cmake --preset asan --log-level=WARNING "-DLIULI_FUZZ_RUNS=${LIULI_FUZZ_RUNS:-2000}"
stage "build asan" build asan "${readers[@]}" "${fuzzers[@]}"
stage "tests asan" ctest --preset asan --no-tests=error -R "$asan_tests"

stage "configure tsan" cmake --preset tsan --log-level=WARNING
stage "build tsan" build tsan core_test
stage "tests tsan" ctest --preset tsan --no-tests=error -R '^core_test$'

stage "64-bit Arm" ./scripts/test_aarch64.sh
summary "all tests passed"
