"""The built wheel holds our package, with its Lua, SQL and static files, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SHIPPED = {".py", ".pyi", ".typed", ".lua", ".sql", ".html", ".css", ".js", ".svg", ".properties"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)],
        check=True, capture_output=True,
    )  # fmt: skip
    [built] = out.glob("jobwire-*.whl")
    return zipfile.ZipFile(built)


@pytest.mark.slow
def test_the_wheel_holds_every_source_file_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "src"
    ours = {
        str(path.relative_to(source))
        for package in ("jobwire", "pyspark_jobwire")
        for path in (source / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == ours
    assert {Path(name).suffix or Path(name).name for name in packed} <= SHIPPED


@pytest.mark.slow
def test_the_bare_install_needs_few_packages(wheel: zipfile.ZipFile) -> None:
    [metadata] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    lines = wheel.read(metadata).decode().splitlines()
    bare = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    extras = [line.partition(": ")[2] for line in lines if line.startswith("Provides-Extra:")]
    assert len(bare) <= 3, bare
    expected = {"redis", "postgres", "mongo", "embedded", "spark", "cli", "web", "observe", "telegram", "all"}
    assert set(extras) == expected
