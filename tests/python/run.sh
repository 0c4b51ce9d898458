#!/usr/bin/env bash
# Installs the Python package into a virtual environment of its own and runs its tests and the examples.
#
#   run.sh BUILD_FOLDER       the objects of this build folder are used again (it must be configured); its bin/liuli is
#                             the program whose captures are compared; LIULI_MODELS holds smollm2.gguf
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
venv=build/python-venv

# As a user does: into a new environment, with nothing in it, built in isolation; pip brings what pyproject.toml names.
python3 -m venv --clear $venv
$venv/bin/python -m pip install -q --disable-pip-version-check . -C build-dir="$folder" -C cmake.define.LIULI_TESTS=ON
# pip's environment with nanobind is gone by now: the folder must not look for it when something changes.
cmake "$folder" -DLIULI_PYTHON=OFF --log-level=WARNING >/dev/null

export LIULI_PROGRAM=$PWD/$folder/bin/liuli
python=$PWD/$venv/bin/python
(cd tests/python && "$python" -m unittest -v)
for example in exploratory_analysis activation_patching steering logit_lens; do
  echo "-- examples/python/$example.py"
  "$python" examples/python/$example.py "$LIULI_MODELS/smollm2.gguf"
done
