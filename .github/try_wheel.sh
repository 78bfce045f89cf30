#!/usr/bin/env bash
# Installs this machine's wheel in a fresh environment and runs the demo, from another folder.
#
#     .github/try_wheel.sh FOLDER PYTHON        e.g. dist python3.13
set -euo pipefail
folder=$(realpath "$1")
python=$2
abi=$("$python" -c 'import sys; print("cp311-cp311" if sys.version_info < (3, 12) else "cp312-abi3")')
wheel=$(ls "$folder"/jax_fa-*-"$abi"-*_"$(uname -m)".whl)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

"$python" -m venv venv
printf '%s: %s, %d bytes\n' "$("$python" --version)" "$(basename "$wheel")" "$(stat -c %s "$wheel")"
venv/bin/pip install -q --only-binary=:all: jax 'numpy>=1.26'  # JAX's own time is not the wheel's
time venv/bin/pip install -q --only-binary=:all: "$wheel"
time venv/bin/jax-fa
