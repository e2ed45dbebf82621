"""Runs the fast tests on every other Python from 3.11 on that this machine has: `make test-pythons`.

Looks for `python3.N` on the path and among the versions of pyenv, gives each minor version an environment of its own
(`.venv-3.N`) with what those tests need, and runs them one after the other. A machine with one Python passes: the
tests have run on that one already.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
OLDEST = (3, 11)
TESTS = ["tests/unit", "tests/worker", "tests/conformance"]
_VERSION = "import sys; print(*sys.version_info[:2], sys.implementation.name, sys.version_info.releaselevel)"


def candidates() -> Iterator[Path]:
    """Whatever is called python3.N, whether or not it runs."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin"), reverse=True)
    for folder in folders:
        yield from sorted(path for path in folder.glob("python3.*") if re.fullmatch(r"python3\.\d+", path.name))


def other_pythons() -> dict[str, Path]:
    """One interpreter for each minor version but this one's."""
    found: dict[tuple[int, int], Path] = {}
    for path in candidates():
        version = _version_of(path)
        if version is not None and version >= OLDEST and version != sys.version_info[:2]:
            found.setdefault(version, path)
    return {f"{major}.{minor}": found[major, minor] for major, minor in sorted(found)}


def _version_of(python: Path) -> tuple[int, int] | None:
    try:
        said = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):  # a shim of pyenv for a version that is not chosen
        return None
    major, minor, name, level = said.split()
    return (int(major), int(minor)) if (name, level) == ("cpython", "final") else None


def environment(version: str, python: Path) -> Path:
    """The interpreter of an environment that has what the tests need."""
    folder = ROOT / f".venv-{version}"
    inside, stamp = folder / "bin" / "python", folder / ".ready"
    wanted = hashlib.sha256(
        (ROOT / "pyproject.toml").read_bytes() + (ROOT / "constraints.txt").read_bytes()
    ).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return inside
    subprocess.run([python, "-m", "venv", folder], check=True)
    install = [inside, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt"]
    subprocess.run([*install, "pip>=25.1"], cwd=ROOT, check=True)
    subprocess.run([*install, "--editable", ".", "--group", "test"], cwd=ROOT, check=True)
    stamp.write_text(wanted)
    return inside


def main() -> int:
    pythons = other_pythons()
    if not pythons:
        print(f"no other Python from {OLDEST[0]}.{OLDEST[1]} on is installed here")
    failed: list[str] = []
    for version, python in pythons.items():
        print(f"Python {version}: {python}", flush=True)
        inside = environment(version, python)
        command = [inside, "-m", "pytest", "-q", "-n", "4", "--dist", "loadgroup", "-m", "not slow"]
        if subprocess.run([*command, "-p", "no:cacheprovider", *TESTS], cwd=ROOT, check=False).returncode:
            failed.append(version)
    if failed:
        print(f"tests failed on Python {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
