"""`jobwire dashboard`: a process of its own, its options, and the page about it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from jobwire.cli import main
from jobwire.cli.dashboard_stores import chosen_stores
from jobwire.cli.exit_codes import WrongUsage
from jobwire.dashboard.app import PAGES

SECRET = "a-secret-of-the-operator-of-tests"
PAGE = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text(encoding="utf-8")


@contextlib.contextmanager
def served(*arguments, tokens=""):
    """Runs the command until the end of the block, and yields its URL and a list with what it wrote on stderr."""
    environment = {**os.environ, "JOBWIRE_DASHBOARD_TOKENS": tokens}
    command = [sys.executable, "-m", "jobwire", "dashboard", "--port", "0", *arguments]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    wrote = []
    try:
        for line in process.stderr:
            wrote.append(line)
            if found := re.search(r"served at (\S+)/$", line.strip()):
                yield found.group(1), wrote
                break
        process.send_signal(signal.SIGTERM)
        wrote += process.stderr.read().splitlines()
        assert process.wait(timeout=60) == 0, wrote
    finally:
        if process.poll() is None:
            process.kill()
        process.stderr.close()
        process.wait()


@pytest.mark.slow
def test_it_serves_loopback_and_stops_while_pages_are_open():
    with served("--url", "memory:", "--allow-actions") as (url, wrote), httpx.Client(base_url=url) as client:
        assert "All is well: 0 queues" in client.get("/").text
        assert client.get("/", headers={"Host": "evil.example.com"}).status_code == 403
        assert client.get("/", headers={"Origin": "https://evil.example.com"}).status_code == 403
        stream = client.send(client.build_request("GET", "/", headers={"Accept": "text/event-stream"}), stream=True)
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert next(stream.iter_text())
    stream.close()
    assert "without tokens, every program of this machine can act on jobs" in "".join(wrote)


@pytest.mark.slow
def test_beyond_loopback_it_asks_for_a_token():
    tokens = f"ann:operator:{SECRET}"
    with served("--url", "memory:", "--host", "0.0.0.0", tokens=tokens) as (bound, wrote):
        url = bound.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{url}/").status_code == 401
        page = httpx.get(f"{url}/", auth=("ann", SECRET))
        assert (page.status_code, "ann, operator" in page.text) == (200, True)
    assert SECRET not in "".join(wrote)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--host", "0.0.0.0"], "is not a loopback address, which needs tokens"),
        (["--tokens", "missing.toml"], "missing.toml: no such file or directory"),
        (["--tokens", "x", "--user-header", "X-User"], "give either --tokens or --user-header, not both"),
        (["--user-header", "X-User", "--user-role", "boss"], "must be viewer, operator or admin"),
        (["--redact", "("], "must be a regular expression"),
        (["--store", "prod"], "so there is no store 'prod'"),
        (["--url", "nonsense"], "nonsense"),
    ],
    ids=range(7),
)
def test_options_that_break_a_rule_are_refused_with_a_sentence(*, arguments, complaint, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("JOBWIRE_DASHBOARD_TOKENS", raising=False)
    monkeypatch.chdir(tmp_path)
    url = [] if "--store" in arguments or "--url" in arguments else ["--url", "memory:"]
    assert main(["dashboard", "--port", "0", *url, *arguments]) in (1, 2)
    assert complaint in capsys.readouterr().err


def test_stores_are_named_by_profiles_or_by_their_protocols(monkeypatch, tmp_path):
    for name in ("JOBWIRE_URL", "JOBWIRE_STORE", "JOBWIRE_CAMPAIGN_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert chosen_stores([], ["memory:a", "memory:b"]) == {"memory": "memory:a", "memory-2": "memory:b"}
    assert next(iter(chosen_stores([], []).values())).endswith("embedded:")
    Path("jobwire.toml").write_text('[stores]\nprod = "memory:prod"\nstaging = "memory:staging"\n')
    assert chosen_stores([], []) == {"prod": "memory:prod", "staging": "memory:staging"}
    assert chosen_stores(["staging"], ["memory:x"]) == {"staging": "memory:staging", "memory": "memory:x"}
    with pytest.raises(WrongUsage, match="did you mean prod"):
        chosen_stores(["prd"], [])
    monkeypatch.setenv("JOBWIRE_URL", "memory:env")
    assert chosen_stores([], []) == {"memory": "memory:env"}
    monkeypatch.setenv("JOBWIRE_CAMPAIGN_URL", "postgresql://host/app")
    assert chosen_stores([], []) == {"memory": "memory:env", "campaigns": "postgresql://host/app"}
    assert chosen_stores(["prod"], []) == {"prod": "memory:prod"}
    monkeypatch.setenv("JOBWIRE_CAMPAIGN_URL", "")
    with pytest.raises(WrongUsage, match="JOBWIRE_CAMPAIGN_URL is set but empty"):
        chosen_stores([], [])


def test_the_program_in_the_documentation_runs(monkeypatch):
    [program] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.setenv("JOBWIRE_URL", "memory:")
    monkeypatch.setenv("ANNS_TOKEN", SECRET)
    found = {}
    exec(program, found)
    assert [route.path for route in found["app"].routes] == ["/ops/jobs"]


def test_the_documentation_has_every_page_and_option():
    for path in PAGES:
        assert path[1:].replace("failures", "causes") in PAGE
    for option in (
        "--allow-actions",
        "--tokens",
        "--user-header",
        "--user-role",
        "--host",
        "--redact",
        "--timeout",
        "--lake",
    ):
        assert f"`{option}" in PAGE or f"`{option} " in PAGE
