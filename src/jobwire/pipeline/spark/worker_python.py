"""The Python that a Spark of this machine starts its processes with.

Spark puts a zip of `pyspark` first on their path. It has no bytecode, so every process would compile it again, which
takes most of a second. The one that is installed beside this package is the same and is compiled already.
"""

from __future__ import annotations

import atexit
import os
import shutil
import site
import sys
import tempfile
from pathlib import Path

# Whatever else Spark or the user put on the path stays there.
_SHIM = """#!/bin/sh
kept=
IFS=:
for entry in $PYTHONPATH; do
  case "$entry" in
    "{spark}"/*) ;;
    *) kept="${{kept:+$kept:}}$entry" ;;
  esac
done
unset IFS
PYTHONPATH="$kept" exec "{python}" "$@"
"""


def worker_python() -> str:
    """Returns the program for PYSPARK_PYTHON: this Python, where it finds `pyspark` without the zip."""
    import pyspark  # noqa: PLC0415 an extra

    spark = Path(pyspark.__file__).parent
    if os.name != "posix" or str(spark.parent) not in [*site.getsitepackages(), site.getusersitepackages()]:
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="jobwire-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shim = folder / "python"
    shim.write_text(_SHIM.format(spark=spark, python=sys.executable))
    shim.chmod(0o755)
    return str(shim)
