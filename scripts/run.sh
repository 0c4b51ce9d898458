#!/usr/bin/env bash
# From a bare Debian 12 to an answer: installs what is needed, builds Liuli, fetches SmolLM2 and lets it answer; then shows
# how the first new token came about.
#
#   run.sh                              a sample question
#   run.sh 'Why is the sky blue?'       this prompt
#   run.sh 'Hello' -n 20 --lang zh      options of `liuli run` go through
#
# LIULI_CACHE is where the model goes (default: the user's cache folder), LIULI_MODELS a folder with smollm2.gguf in it.
set -euo pipefail
cd "$(dirname "$0")/.."
caller=${OLDPWD:-.}

./scripts/setup.sh
# A folder that was configured before, perhaps with tests, stays as it is: both scripts build in build/release.
if [ ! -f build/release/build.ninja ]; then
  log=$(cmake --preset release -DLIULI_TESTS=OFF 2>&1) || { echo "$log" >&2; exit 1; }
fi
if ! ninja -C build/release -n liuli | grep -q 'no work to do'; then
  echo "building build/release/bin/liuli (some minutes, the first time)" >&2
  ninja -C build/release liuli >&2
fi
./scripts/fetch_model.py smollm2 >/dev/null  # `liuli` finds it by its short name, by the same rule
program=$PWD/build/release/bin/liuli

cd "$caller"
# Without a prompt `liuli run` reads a pipe to its end: here only when asked to (-), so that no caller waits for ever.
[[ " $* " == *" - "* ]] || exec </dev/null
exec "$program" run smollm2 --report "$@"
