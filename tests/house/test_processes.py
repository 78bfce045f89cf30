"""What the processes that tests start have in common."""

import subprocess
import sys

import jax_fa


def test_they_import_the_package_under_test(tmp_path):
    # The checkout has a folder of the package's name without the extension module; run from there,
    # Python would take it before the installed one.
    (tmp_path / "jax_fa").mkdir()
    (tmp_path / "jax_fa" / "__init__.py").touch()
    command = [sys.executable, "-c", "import jax_fa; print(jax_fa.__file__)"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == jax_fa.__file__
