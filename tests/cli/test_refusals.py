"""What goes wrong is one plain sentence on stderr, never a traceback."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwire import NewJob, __version__

Call = Callable[..., Any]

STORE = "bullmq+redis://127.0.0.1:1"
PIPELINE = {
    "pyspark": [
        ["run", STORE],
        ["ingest", STORE],
        ["build"],
        ["report"],
        ["tidy"],
        ["load", "mail.csv", "--to", STORE, "--queue", "emails"],
        ["move", "--from", STORE, "--to", "pgboss+postgresql://127.0.0.1:1/x", "--queue", "emails"],
        ["archive", STORE, "--queue", "emails", "--before", "2026-01-01"],
        ["restore", STORE, "--queue", "emails", "--id", "1"],
    ],
    "pandas": [["report"]],
    "pyarrow": [["doctor"]],
}


@pytest.fixture
def dead_url() -> str:
    """A port that was free a moment ago, so nobody answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"bullmq+redis://:hunter2@127.0.0.1:{probe.getsockname()[1]}/0"


def _is_one_sentence(said: Any, *parts: str, code: int = 1) -> None:
    assert (said.code, said.out) == (code, ""), said
    assert said.err.startswith("jobwire: "), said
    assert said.err.count("\n") == 1, said
    for part in parts:
        assert part in said.err, said


def test_a_dead_server(spawn: Call, dead_url: str) -> None:
    said = spawn("counts", "emails", "--url", dead_url)
    _is_one_sentence(said, "unavailable", "127.0.0.1", code=3)
    assert "hunter2" not in said.err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("bullmq+redis://127.0.0.1:1", "Connection refused by 127.0.0.1:1"),
        ("bullmq+sentinel://127.0.0.1:1/main", "none of the sentinels can be used"),
        ("bullmq+cluster://127.0.0.1:1/?prefix={bull}", "Connection refused by 127.0.0.1:1"),
        ("bridgemq+redis://127.0.0.1:1", "Connection refused by 127.0.0.1:1"),
        ("pgboss+postgresql://app@127.0.0.1:1/shop", "Connection refused"),
        ("monque+mongodb://127.0.0.1:1/shop?serverSelectionTimeoutMS=200", "127.0.0.1:1: connection refused"),
    ],
)
def test_a_dead_server_is_described_without_the_state_of_its_driver(call: Call, url: str, words: str) -> None:
    said = call("queues", "--url", url)
    _is_one_sentence(said, "is unavailable", words, code=3)
    assert not re.search(r"[<{]\w|Errno|imeoutMS: ", said.err.replace("prefix={bull}", "")), said.err


def test_a_wrong_password(call: Call, every_url: str) -> None:
    wrong = re.sub(r"//([^:@/]*):[^@]*@", r"//\1:hunter2@", every_url)
    assert "hunter2" in wrong
    said = call("queues", "--url", wrong)
    _is_one_sentence(said, "refused: ", code=1)
    assert not re.search("hunter2|full error|Traceback", said.err), said.err


def test_a_dead_server_for_a_worker(spawn: Call, dead_url: str) -> None:
    said = spawn("worker", "json:dumps", "--queue", "emails", "--url", dead_url)
    assert (said.code, said.out) == (3, ""), said
    assert "Traceback" not in said.err
    assert "unavailable" in said.err.splitlines()[-1]
    assert "hunter2" not in said.err


def test_a_url_without_a_protocol(call: Call) -> None:
    said = call("counts", "emails", "--url", "redis://127.0.0.1")
    _is_one_sentence(said, "say which protocol: bullmq+redis", code=2)


def test_an_empty_variable_instead_of_a_url(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBWIRE_URL", "")
    _is_one_sentence(call("queues"), "JOBWIRE_URL: is set but empty", code=2)


def test_an_unknown_job(call: Call, jobwire_url: str) -> None:
    call("add", "emails", "1", "--url", jobwire_url)
    unknown = call("job", "emails", "404", "--url", jobwire_url)
    _is_one_sentence(unknown, "queue 'emails' has no job '404'", code=4)


def test_data_that_is_not_json(call: Call, jobwire_url: str) -> None:
    _is_one_sentence(call("add", "emails", "{to: a}", "--url", jobwire_url), "the job's data is not JSON")
    assert call("queues", "--url", jobwire_url).code == 4, "nothing was made"


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [("--attempts", "0", "at least 1"), ("--name", "", "must not be empty")],
)
def test_an_option_out_of_its_bounds(call: Call, jobwire_url: str, option: str, value: str, rule: str) -> None:
    _is_one_sentence(call("add", "emails", "1", option, value, "--url", jobwire_url), option[2:], rule)


def test_a_number_that_no_store_holds_is_refused_by_its_name(call: Call, every_url: str) -> None:
    huge, where = "9" * 23, ("--url", every_url)
    _is_one_sentence(
        call("add", "emails", "1", "--attempts", huge, *where), "attempts: must be at most 9007199254740991"
    )
    assert call("queues", *where).code == 4, "nothing was made"
    call("add", "emails", "1", *where)
    _is_one_sentence(call("jobs", "emails", "--limit", huge, *where), "limit: must be at most")
    if every_url.startswith("bullmq"):
        _is_one_sentence(call("events", "emails", "--last", huge, *where), "limit: must be at most")
        _is_one_sentence(call("limits", "emails", "--rate", f"{huge}/1m", *where), "rate.jobs: must be at most")


@pytest.mark.parametrize("age", ["-5", "nan", "inf", "1e300", "6000w"])
@pytest.mark.parametrize(
    "command",
    [
        ("remove", "emails", "--state", "waiting", "--dry-run", "--older-than"),
        ("jobs", "emails", "--younger-than"),
        ("counts", "emails", "--watch", "--every"),
        ("add", "emails", "1", "--delay"),
        ("health", "--timeout"),
        ("worker", "json:dumps", "--queue", "emails", "--timeout"),
    ],
    ids=lambda command: command[0],
)
def test_a_duration_is_never_negative_endless_or_no_number(call: Call, command: tuple[str, ...], age: str) -> None:
    said = call(*command, age, *(() if command[0] == "health" else ("--url", STORE)))
    assert (said.code, said.out) == (2, ""), said
    assert "write a duration such as" in said.err


@pytest.mark.parametrize("arguments", [("--seconds", "0"), ("--rate", "0"), ("--rate", "1e9"), ("--seconds", "nan")])
def test_a_demo_out_of_its_bounds(call: Call, tmp_path: Any, arguments: tuple[str, str]) -> None:
    _is_one_sentence(call("demo", *arguments, "--folder", tmp_path), arguments[0][2:])


# Not `sys.modules[package] = None`: pyarrow takes that for a pandas that is there.
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from jobwire.cli import main
for arguments in {commands!r}:
    print(main(arguments))
"""


@pytest.mark.parametrize(
    ("package", "extra", "commands"),
    [
        ("typer", "cli", [["--help"]]),
        ("rich", "cli", [["counts", "emails", "--url", "memory:"]]),
        ("redis", "redis", [["counts", "emails", "--url", "bullmq+redis://127.0.0.1"]]),
        ("jinja2", "web", [["dashboard", "--url", "memory:"]]),
        ("psycopg", "postgres", [["pgboss", "init", "--url", "pgboss+postgresql://127.0.0.1/x"]]),
        *((package, "spark", [["pipeline", *one] for one in commands]) for package, commands in PIPELINE.items()),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} commands",
)
def test_a_missing_package(package: str, extra: str, commands: list[list[str]]) -> None:
    """Each command ends with 1 and says one sentence on stderr."""
    program = WITHOUT.format(package=package, commands=commands)
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["1"] * len(commands), done
    assert done.stderr.count("\n") == len(commands), done.stderr
    assert done.stderr.count(f"pip install 'jobwire[{extra}]'") == len(commands), done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "emails"], "Missing argument"),
        (["counts", "emails", "--urk", "x"], "No such option"),
        (["coutns", "emails"], "counts"),
        (["jobs", "emails", "--state", "lost"], "'lost'"),
        (["worker", "shop"], "MODULE:OBJECT"),
        (["worker", "no_such_shop:handle"], "no module"),
        (["worker", "json:no_such_handler"], "no_such_handler"),
        (["worker", "json:dumps"], "--queue"),
        (["worker", "jsn:dumps"], "did you mean json?"),
        (["worker", "json:dump_s"], "did you mean dumps?"),
        (["worker", "json.decoderr:JSONDecoder"], "did you mean json.decoder?"),
        (["worker", ".mail:handle"], "without the leading dot"),
        (["worker", "./no_such_file.py:handle"], "there is no file"),
        (["worker", "./no_such_file.py"], "./no_such_file.py:handle"),
        (["worker", "json:__name__", "--queue", "emails"], "neither a Worker nor a function"),
    ],
)
def test_a_wrong_usage_exits_with_2_and_shows_the_usage(call: Call, arguments: list[str], words: str) -> None:
    said = call(*arguments)
    assert (said.code, said.out) == (2, ""), said
    assert "Usage: jobwire" in said.err
    assert words in said.err.replace("\n", " "), said.err


def test_the_doctor_names_what_is_to_install() -> None:
    program = (
        "import sys, importlib.metadata as known; sys.modules['pyspark'] = None; real = known.version\n"
        "def version(name):\n"
        "    if name == 'pyspark': raise known.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "known.version = version\n"
        "from jobwire.cli import main; sys.exit(main(['pipeline', 'doctor', 'bullmq+redis://127.0.0.1:1']))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, ""), done
    spark = next(line for line in done.stdout.splitlines() if " Spark: " in line)
    assert "pip install 'jobwire[spark]'" in spark


@pytest.mark.parametrize(
    ("url", "words", "code"),
    [
        ("bullmq+redis://127.0.0.1:1/0?socket_timeout=soon", "socket_timeout", 2),
        ("bullmq+redis://127.0.0.1:1/0?ssl_ca_certs=/etc/hosts", "ssl_ca_certs", 1),  # known when it is read
        ("pgboss+postgresql://app:hunter2@127.0.0.1:1/x?no_such_option=1", "no_such_option", 2),
        ("bullmq+cluster://127.0.0.1:1/?prefix={mail}", "unavailable", 3),
        ("bullmq+sentinel://127.0.0.1:1/main/0", "unavailable", 3),
    ],
)
def test_a_url_that_the_driver_does_not_take_or_reach(call: Call, url: str, words: str, code: int) -> None:
    said = call("counts", "emails", "--url", url)
    _is_one_sentence(said, words, code=code)
    assert "hunter2" not in said.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ingest nonsense://x", "unknown protocol"),
        ("run nonsense://x", "unknown protocol"),
        ("archive nonsense://x --queue emails --before 2031-01-01", "unknown protocol"),
        ("restore nonsense://x --queue emails", "unknown protocol"),
        ("build --from 2031-02-01 --to 2031-01-01", "after that of --from"),
        ("report --from 2031-02-01 --to 2031-01-01", "after that of --from"),
    ],
)
def test_a_wrong_command_line_of_the_pipeline_is_refused_before_anything_is_made(
    call: Call, tmp_path: Path, command: str, words: str
) -> None:
    said = call("pipeline", *command.split(), "--lake", str(tmp_path / "lake"))
    assert (said.code, words in " ".join(said.err.split()), list(tmp_path.iterdir())) == (2, True, []), said


@pytest.mark.parametrize(
    "command", [["counts", "emails", "--url"], ["demo", "--folder"], ["pipeline", "report", "--lake"]]
)
def test_a_file_in_the_place_of_a_folder(call: Call, tmp_path: Any, command: list[str]) -> None:
    (tmp_path / "taken").write_text("mine")
    where = f"bullmq+embedded://{tmp_path / 'taken'}" if command[-1] == "--url" else str(tmp_path / "taken")
    said = call(*command, where)
    assert said.code == 1, said
    assert "Traceback" not in said.err
    assert str(tmp_path / "taken") in said.err.splitlines()[-1], said


def test_the_wrong_protocol_for_a_database(call: Call) -> None:
    _is_one_sentence(call("pgboss", "init", "--url", "bullmq+redis://127.0.0.1:1"), "pgboss+postgresql://")


@pytest.mark.parametrize("arguments", [("jobs", "emails", "--json"), ("jobs", "emails"), ("--help",)])
def test_a_reader_that_goes_away(start: Call, on_queue: Call, jobwire_url: str, arguments: tuple[str, ...]) -> None:
    on_queue(lambda queue: queue.add_many([NewJob("x" * 1000) for _ in range(300)]))
    more = () if arguments == ("--help",) else ("--url", jobwire_url, "--limit", "300")
    writing = start(*arguments, *more)
    writing.stdout.close()
    assert writing.stderr.read() == ""
    assert writing.wait(60) == 141


def test_ctrl_c_while_the_store_does_not_answer(start: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        waiting = start("counts", "emails", "--url", f"bullmq+redis://127.0.0.1:{silent.getsockname()[1]}/0")
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            waiting.send_signal(signal.SIGINT)
            _, err = waiting.communicate(timeout=60)
    assert waiting.returncode not in (0, None)
    assert "Traceback" not in err
    assert err.count("\n") <= 2, err


def test_ctrl_c_while_the_command_is_loaded() -> None:
    program = """
import signal, sys
from importlib.abc import MetaPathFinder

class Interrupting(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "jobwire":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from jobwire_cli import main
raise SystemExit(main())
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", ""), done


def test_the_version_is_told(call: Call) -> None:
    assert (call("--version").code, call("--version").out) == (0, f"jobwire {__version__}\n")


def test_the_help_loads_neither_drivers_nor_tables() -> None:
    heavy = ("redis", "jobwire.backends.bullmq", "jobwire.embedded", "rich.table", "jobwire.cli.session")
    program = f"import sys, jobwire.cli.app; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
