"""The files in deploy/: understood by the tools that read them, and in line with the program."""

from __future__ import annotations

import json
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.main import get_command

from jobwire.cli import main
from jobwire.cli.app import app
from jobwire.cli.listening import DEFAULT_PORT, Listening
from jobwire.observe import endpoint

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNIT = DEPLOY / "systemd/jobwire-worker@.service"
DOCKERFILE = DEPLOY / "docker/Dockerfile"
MANIFESTS: dict[str, dict[str, Any]] = {
    document["kind"]: document
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
}
POD: dict[str, Any] = MANIFESTS["Deployment"]["spec"]["template"]["spec"]
CONTAINER: dict[str, Any] = POD["containers"][0]
HANDING_BACK = 15
"""Seconds that a worker may need to hand back its jobs, after --shutdown-timeout."""


def options(words: list[str]) -> dict[str, Any]:
    """The options of a command line of jobwire. Fails for one that the program does not know."""
    command: Any = get_command(app)
    name, *others = words
    with command.commands[name].make_context(name, others) as context:
        return context.params


def ran(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)


def settings() -> dict[str, list[str]]:
    """The settings of the unit."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


# --- systemd ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def installed_unit(tmp_path: Path) -> Path:
    """The unit as an instance whose program exists."""
    program = str(Path(sys.executable).parent / "jobwire")
    text = UNIT.read_text().replace("/srv/jobwire/%i/.venv/bin/jobwire", program)
    unit = tmp_path / "jobwire-worker@mail.service"
    unit.write_text(re.sub(r"^WorkingDirectory=.*$", f"WorkingDirectory={tmp_path}", text, flags=re.MULTILINE))
    return unit


needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


@needs_systemd
def test_systemd_understands_the_unit(installed_unit: Path) -> None:
    done = ran("systemd-analyze", "verify", "--man=no", installed_unit)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
def test_systemd_finds_a_mistake_in_the_unit(installed_unit: Path) -> None:
    installed_unit.write_text(installed_unit.read_text().replace("WatchdogSec=30", "WatchdogSecs=30"))
    done = ran("systemd-analyze", "verify", "--man=no", installed_unit)
    assert "WatchdogSecs" in done.stderr


@needs_systemd
def test_the_unit_is_hardened(installed_unit: Path) -> None:
    done = ran("systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", installed_unit)
    assert done.returncode == 0, done.stdout[-300:]


def test_the_unit_starts_a_worker_that_notifies_it_in_time() -> None:
    unit = settings()
    [start] = unit["ExecStart"]
    words = shlex.split(start.replace("${TARGET}", "shop.mail:handle").replace("$OPTIONS", "--queue emails"))
    given = options(words[1:])
    assert (unit["Type"], unit["KillMode"], unit["NotifyAccess"]) == (["notify"], ["mixed"], ["main"])
    assert int(unit["TimeoutStopSec"][0]) >= given["shutdown_timeout"] + HANDING_BACK
    assert int(unit["TimeoutStartSec"][0]) > given["wait_for_store"]


def test_the_example_of_a_unit_is_a_command_line() -> None:
    example = dict(re.findall(r"^#     (\w+)=(.+)$", UNIT.read_text(), re.MULTILINE))
    assert options(["worker", example["TARGET"], *shlex.split(example["OPTIONS"])])["queue"] == ["emails"]


# --- Docker -----------------------------------------------------------------------------------------------------------


def instruction(name: str) -> str:
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    return [line.partition(" ")[2] for line in text.splitlines() if line.startswith(f"{name} ")][-1]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="hadolint has no package for this machine")
def test_hadolint_has_nothing_to_say_about_the_image() -> None:
    done = ran(Path(sys.executable).parent / "hadolint", DOCKERFILE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_commands_of_the_image_are_those_of_the_program() -> None:
    assert json.loads(instruction("ENTRYPOINT")) == ["jobwire"]
    given = options(json.loads(instruction("CMD")))
    assert Listening.parse(given["listen"]) == Listening("0.0.0.0", int(instruction("EXPOSE")))
    check = json.loads(re.split(r"\bCMD\b", instruction("HEALTHCHECK"))[1])
    assert check[0] == "jobwire"
    assert options(check[1:])["live"] is True
    assert int(instruction("EXPOSE")) == DEFAULT_PORT


def test_the_image_runs_as_a_user_without_rights() -> None:
    assert instruction("USER") == "10001:10001"
    assert POD["securityContext"]["runAsUser"] == 10001


def test_secrets_stay_out_of_the_image() -> None:
    ignored = (DEPLOY / "docker/.dockerignore").read_text().splitlines()
    assert {".env", "*.env", "jobwire.toml", ".git"} <= set(ignored)


# --- Kubernetes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "PodDisruptionBudget"])
def test_the_manifests_fit_the_schemas_of_kubernetes(kind: str) -> None:
    kubernetes_validate.validate(MANIFESTS[kind], kubernetes_validate.latest_version(), strict=True)


def test_the_container_starts_a_worker_that_ends_in_time() -> None:
    given = options(CONTAINER["args"])
    assert POD["terminationGracePeriodSeconds"] >= given["shutdown_timeout"] + HANDING_BACK
    [port] = CONTAINER["ports"]
    assert Listening.parse(given["listen"]) == Listening("0.0.0.0", port["containerPort"])


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_probes_ask_what_the_worker_answers(probe: str) -> None:
    asked = CONTAINER[probe]["httpGet"]
    assert asked == {"path": "/ready" if probe == "readinessProbe" else "/live", "port": "metrics"}
    assert CONTAINER[probe]["timeoutSeconds"] > endpoint.PATIENCE


def test_the_labels_of_pods_are_those_that_are_selected() -> None:
    labels = MANIFESTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor"):
        assert MANIFESTS[kind]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    [scraped] = MANIFESTS["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert scraped["port"] in [port["name"] for port in CONTAINER["ports"]]


def test_the_example_for_keda_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    first, _, printed = (DEPLOY / "kubernetes/keda.yaml").read_text().partition("\n")
    command = shlex.split(first.removeprefix("# Made by: jobwire "))
    assert main(command) == 0
    assert capsys.readouterr().out == printed


def test_keda_scales_the_deployment_by_its_concurrency() -> None:
    scaled, given = MANIFESTS["ScaledObject"]["spec"], options(CONTAINER["args"])
    assert scaled["scaleTargetRef"]["name"] == MANIFESTS["Deployment"]["metadata"]["name"]
    assert scaled["advanced"]["scalingModifiers"]["target"] == str(given["concurrency"])
    assert all(f":{given['queue'][0]}:" in trigger["metadata"]["listName"] for trigger in scaled["triggers"])
    [secret] = MANIFESTS["TriggerAuthentication"]["spec"]["secretTargetRef"]
    assert secret["name"] == CONTAINER["env"][0]["valueFrom"]["secretKeyRef"]["name"]
    assert "replicas" not in MANIFESTS["Deployment"]["spec"]
