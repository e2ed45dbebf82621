"""Stores by name: jobwire.toml or pyproject.toml, the environment, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwire.cli.exit_codes import WrongUsage
from jobwire.cli.profiles import expanded, located

Call = Callable[..., Any]

FILE = """
[stores]
prod = "bullmq+redis://app:${TEST_SECRET}@prod.example/0"
staging = "bullmq+redis://staging.example/0"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with one below it, which is the current one."""
    for name in ("JOBWIRE_URL", "JOBWIRE_STORE", "TEST_SECRET"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "deeper")
    return tmp_path


def test_a_store_is_found_by_its_name_from_a_folder_below(folder: Path) -> None:
    (folder / "jobwire.toml").write_text(FILE)
    assert located(None, "staging") == "bullmq+redis://staging.example/0"
    assert located(None, None) is None


def test_the_nearest_file_counts(folder: Path) -> None:
    (folder / "jobwire.toml").write_text(FILE)
    (folder / "deep" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert located(None, "staging") == "bullmq+redis://staging.example/0"
    (folder / "deep" / "pyproject.toml").write_text('[tool.jobwire]\nstores = {staging = "memory:near"}\n')
    assert located(None, "staging") == "memory:near"
    (folder / "deep" / "jobwire.toml").write_text('[stores]\nstaging = "memory:nearer"\n')
    assert located(None, "staging") == "memory:nearer"


def test_secrets_come_from_the_environment_and_are_encoded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "jobwire.toml").write_text(FILE)
    monkeypatch.setenv("TEST_SECRET", "p@ss/w:rd?")
    assert located(None, "prod") == "bullmq+redis://app:p%40ss%2Fw%3Ard%3F@prod.example/0"
    assert expanded("pgboss+${TEST_SECRET}", "it") == "pgboss+p@ss/w:rd?"
    option = expanded("pgboss+postgresql://host/app?password=${TEST_SECRET}&schema=x", "it")
    assert option == "pgboss+postgresql://host/app?password=p%40ss%2Fw%3Ard%3F&schema=x"


@pytest.mark.parametrize(
    "url",
    [
        "bullmq+redis://host:${TEST_SECRET}/0",
        "bullmq+redis://host/${TEST_SECRET}",
        "pgboss+postgresql://host/app?pasword=${TEST_SECRET}",
        "${TEST_SECRET}",
    ],
)
def test_a_url_that_is_refused_is_shown_without_its_secrets(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: Call, url: str
) -> None:
    (folder / "jobwire.toml").write_text(f'[stores]\nprod = "{url}"\n')
    monkeypatch.setenv("TEST_SECRET", "hunter2")
    said = call("counts", "emails", "--store", "prod")
    assert (said.code, said.out) == (2, ""), said
    assert "hunter2" not in said.err
    assert f"(got '{url.replace('pasword=${TEST_SECRET}', 'pasword=***')}')" in said.err


@pytest.mark.parametrize(("value", "state"), [(None, "not set"), ("", "empty")])
def test_a_missing_secret_is_refused_by_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: Call, value: str | None, state: str
) -> None:
    (folder / "jobwire.toml").write_text(FILE)
    if value is not None:
        monkeypatch.setenv("TEST_SECRET", value)
    said = call("counts", "emails", "--store", "prod")
    assert (said.code, said.out) == (2, ""), said
    assert said.err == (
        f"jobwire: store 'prod' in {folder / 'jobwire.toml'} needs the environment variable TEST_SECRET, "
        f"which is {state}\n"
    )


def test_the_environment_and_the_file_name_a_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "jobwire.toml").write_text(f'store = "staging"\n{FILE}other = "memory:other"\n')
    assert located(None, None) == "bullmq+redis://staging.example/0"
    monkeypatch.setenv("JOBWIRE_STORE", "other")
    assert located(None, None) == "memory:other"
    assert located(None, "staging") == "bullmq+redis://staging.example/0"
    assert located("memory:given", None) == "memory:given"
    monkeypatch.setenv("JOBWIRE_URL", "memory:environment")
    with pytest.raises(WrongUsage, match="both set"):
        located(None, None)
    monkeypatch.delenv("JOBWIRE_STORE")
    assert located(None, None) is None, "the library uses JOBWIRE_URL"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FILE, "has no store 'prd'; did you mean prod?"),
        ("stores = 3", "must be a table of names and URLs"),
        ("[stores]\nprd = 3", "must be a table of names and URLs"),
        ("store = 3", "must be the name of a store"),
        ('[stors]\nprd = "memory:"', "unknown key 'stors'; did you mean stores?"),
        ("[stores", "is not valid TOML"),
        ('[stores]\nprd = "memory:${no good}"', "variable without a valid name: '${no good}'"),
    ],
)
def test_a_wrong_file_is_one_sentence(folder: Path, call: Call, text: str, words: str) -> None:
    (folder / "jobwire.toml").write_text(text)
    said = call("counts", "emails", "--store", "prd")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1), said
    assert words in said.err


def test_a_store_without_a_file_and_two_ways_at_once(call: Call) -> None:
    alone = call("counts", "emails", "--store", "prod")
    assert (alone.code, alone.err) == (
        2,
        "jobwire: there is no jobwire.toml here or in a folder above, so there is no store 'prod'\n",
    )
    both = call("counts", "emails", "--store", "prod", "--url", "memory:")
    assert (both.code, both.err) == (2, "jobwire: give either --url or --store, not both\n")


def test_an_empty_name_of_a_store_is_refused(call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBWIRE_STORE", "")
    said = call("queues")
    assert (said.code, said.out) == (2, ""), said
    assert "JOBWIRE_STORE is set but empty" in said.err


def test_a_command_uses_the_store(call: Call, folder: Path, jobwire_url: str) -> None:
    (folder / "jobwire.toml").write_text(f'[stores]\nprod = "{jobwire_url}"\n')
    assert call("add", "emails", "1", "--store", "prod").out == "1\n"
    assert call("counts", "emails", "--url", jobwire_url, "--json").json["waiting"] == 1
