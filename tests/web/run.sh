#!/usr/bin/env bash
# Rebuilds the tour's page, compares it with the committed one, and opens tours of several models in headless Chromium.
#
#   tests/web/run.sh BUILD_FOLDER [SCREENSHOTS]     SCREENSHOTS: a folder for the pictures of docs/tour.md
#
# LIULI_MODELS: a folder with smollm2.gguf, qwen2.5.gguf, gemma3.gguf and minilm/. CHROMIUM: the browser (/usr/bin/chromium).
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$PWD/${1:?"usage: run.sh BUILD_FOLDER"}/bin/liuli

(
  cd web
  npm ci --no-audit --no-fund --loglevel=error
  npx tsc --noEmit
  # Beside the committed page, not over it.
  npx vite build --outDir ../build/web --emptyOutDir --logLevel warn
)
cmp build/web/index.html web/dist/index.html ||
  { echo "web/dist/index.html is not what web/src builds: npm run build in web/, and commit it" >&2; exit 1; }
if grep -n '"resolved"\|https\?://' web/package-lock.json; then
  echo "web/package-lock.json names a registry: any must be able to serve it" >&2
  exit 1
fi

node tests/web/tour_test.mjs "$program" "${LIULI_MODELS:?}" tests/golden/tiny ${2:+"$2"}
