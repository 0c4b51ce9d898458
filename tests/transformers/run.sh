#!/usr/bin/env bash
# Models trained here, loaded by transformers: names, token ids and logits beside an independent implementation.
#
#   run.sh BUILD_FOLDER       its bin/liuli trains
#
# PyTorch is Debian's python3-torch (CPU only, 150 MB; scripts/setup.sh test), since the one on the package index brings gigabytes for
# graphics cards; transformers is a version that still runs on it. LIULI_TORCH_PYTHON: a Python that has both, to be used as it is.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
python=${LIULI_TORCH_PYTHON:-}
if [ -z "$python" ]; then
  venv=build/transformers-venv
  [ -x $venv/bin/python ] || /usr/bin/python3 -m venv --system-site-packages $venv
  $venv/bin/python -m pip install -q --disable-pip-version-check transformers==4.47.1
  python=$venv/bin/python
fi
"$python" tests/transformers/test_trained_models.py "$PWD/$folder/bin/liuli" -v
