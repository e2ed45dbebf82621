"""What the Redis driver's errors mean, and scripts put together from files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from redis import exceptions as driver

import jobwire
from jobwire.backends.redisio.errors import failure_of, translated_errors
from jobwire.backends.redisio.scripts import load
from jobwire.errors import JobNotFound, StoreRefused, StoreUnavailable

IN_A_PIPELINE = "Command # 1 (HSETNX bull:emails:meta opts.maxLenEvents 10000) of pipeline caused error: "
"""How redis-py begins what the server says of a command in a pipeline."""
IN_A_SCRIPT = "Error running script (call to f_40a4): @user_script:227: @user_script: 227: "
"""How Redis 6.2 begins what it says of a command in a script."""


@pytest.mark.parametrize(
    "error",
    [
        driver.ConnectionError("Connection closed by server."),
        driver.TimeoutError("Timeout reading"),
        driver.BusyLoadingError("Redis is loading"),
        driver.ReadOnlyError("You can't write against a read only replica."),
        driver.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
        driver.ClusterDownError("CLUSTERDOWN The cluster is down"),
        driver.ResponseError("MISCONF Errors writing to the AOF"),
        driver.ResponseError("BUSY Redis is busy running a script"),
        driver.ResponseError("NOREPLICAS Not enough good replicas to write."),
        driver.ResponseError(f"{IN_A_PIPELINE}('NOREPLICAS Not enough good replicas to write.',)"),
        driver.ResponseError(f"{IN_A_PIPELINE}MISCONF Errors writing to the AOF"),
        driver.ResponseError(f"{IN_A_SCRIPT}-OOM command not allowed when used memory > 'maxmemory'."),
        driver.ResponseError(f"{IN_A_SCRIPT}-READONLY You can't write against a read only replica."),
        ConnectionResetError("reset"),
        OSError("no route"),
        TimeoutError(),
    ],
)
def test_what_may_pass_is_unavailable(error: Exception) -> None:
    assert isinstance(failure_of(error, "here"), StoreUnavailable)


@pytest.mark.parametrize(
    "error",
    [
        driver.AuthenticationError("invalid username-password pair"),
        driver.AuthorizationError("no"),
        driver.NoPermissionError("this user has no permissions"),
        driver.ResponseError("WRONGTYPE Operation against a key"),
        driver.ResponseError(f"{IN_A_SCRIPT}WRONGTYPE Operation against a key"),
        driver.ResponseError(f"{IN_A_PIPELINE}('WRONGTYPE Operation against a key',)"),
        driver.ResponseError("unknown command 'HPEXPIRE'"),
        driver.DataError("Invalid input"),
    ],
)
def test_what_will_not_change_is_refused(error: Exception) -> None:
    assert isinstance(failure_of(error, "here"), StoreRefused)


def test_no_password_is_in_the_words_of_a_failure() -> None:
    words = str(failure_of(OSError("cannot reach redis://app:hunter2@10.0.0.7:6379/0"), "redis://app:***@10.0.0.7"))
    assert "hunter2" not in words
    assert "10.0.0.7" in words


def test_our_own_errors_pass_through_as_they_are() -> None:
    with pytest.raises(JobNotFound), translated_errors("here"):
        raise JobNotFound("q", "7")
    with pytest.raises(StoreUnavailable, match="already told"), translated_errors("here"):
        raise StoreUnavailable("already told")


@pytest.mark.parametrize("name", ["add", "settle", "extend", "recover"])
def test_a_script_holds_each_part_once(name: str) -> None:
    text = load("jobwire.backends.bullmq", name).text
    assert "--@include" not in text
    assert text.count("local function over_items(") == 1


@pytest.mark.parametrize(("protocol", "kind"), [("bullmq", "scripts"), ("bridgemq", "scripts"), ("pgboss", "sql")])
def test_a_script_or_statement_is_identified_by_its_name_alone(protocol: str, kind: str) -> None:
    """They lie in folders of duties and are asked for by name, so a second one of a name would hide the first."""
    found = (Path(jobwire.__file__).parent / "backends" / protocol / kind).glob("*/*.*")
    names = Counter(path.stem for path in found if path.parent.name != "lib")
    assert len(names) > 15
    assert [name for name, times in names.items() if times > 1] == []
