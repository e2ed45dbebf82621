"""The built wheel holds our package, with its Lua, SQL and static files, and nothing else."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from jobwire.errors import DOCS

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
        for package in ("jobwire", "jobwire_cli", "pyspark_jobwire", "jobwire_pytest")
        for path in (source / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == ours
    assert {Path(name).suffix or Path(name).name for name in packed} <= SHIPPED


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


@pytest.mark.slow
def test_the_bare_install_needs_few_packages(metadata: Message) -> None:
    bare = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert len(bare) <= 3, bare


@pytest.mark.slow
def test_the_extras_are_complete_and_only_one_brings_spark(metadata: Message) -> None:
    extras = {*metadata.get_all("Provides-Extra", [])}
    parts = {"redis", "postgres", "mongo", "embedded", "cli", "web", "observe", "telegram", "webhook"}
    of_pipeline = {"spark", "lake", "sql", "delta", "iceberg"}
    assert extras == {*parts, *of_pipeline, "all", "everything"}
    brought = {extra: set[str]() for extra in extras}
    for line in metadata.get_all("Requires-Dist", []):
        package, _, marker = line.partition(";")
        if found := re.search(r"extra == '(\w+)'", marker):
            brought[found[1]].add(package)
    assert brought["all"] == set().union(*(brought[part] for part in parts))
    assert not any(package.startswith("pyspark") for package in brought["all"])
    assert brought["everything"] == brought["all"].union(*(brought[part] for part in of_pipeline))


@pytest.mark.slow
def test_the_package_index_shows_who_made_it_and_where_it_is(metadata: Message) -> None:
    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    assert {*urls} == {"Documentation", "Source", "Issues", "Changelog"}
    assert urls["Documentation"] == DOCS
    assert all(urls[name].startswith(urls["Source"]) for name in ("Issues", "Changelog"))
    assert metadata["Author"] == "jobwire contributors"
    assert metadata["License-Expression"] == "MIT"


@pytest.mark.slow
def test_the_classifiers_name_the_pythons_that_tests_run_on(metadata: Message) -> None:
    named = [line.rpartition(" ")[2] for line in metadata.get_all("Classifier", []) if re.search(r" 3\.\d+$", line)]
    assert named == ["3.11", "3.12", "3.13"]  # make test, make test-pythons
    assert metadata["Requires-Python"] == ">=3.11"


@pytest.mark.slow
def test_the_links_and_pictures_of_the_package_index_are_absolute(metadata: Message) -> None:
    links = re.findall(r"\]\(([^)]+)\)", metadata.get_payload())
    assert [link for link in links if not link.startswith("https://")] == []
    ours = [link.removeprefix(DOCS) for link in links if link.startswith(DOCS)]
    assert "demo.svg" in ours
    for page in ours:
        path = ROOT / "docs" / page
        assert path.is_file() or path.with_suffix(".md").is_file() or (path / "index.md").is_file(), page
