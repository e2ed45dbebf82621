"""A PostgreSQL server."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobwire.embedded import binaries
from jobwire.embedded.errors import EmbeddedFailed, EmbeddedUnavailable
from jobwire.embedded.ownership import Account, make_data_folder, secret
from jobwire.embedded.privileges import before_exec, has_name, unprivileged_account
from jobwire.embedded.process import started

_THROWAWAY = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
_READY_LINE = 7


@dataclass(frozen=True)
class Postgres:
    """One server, whose superuser `jobwire` has a random password: every local user can connect to loopback, and a
    superuser of PostgreSQL can run programs. Durable: the server's own defaults."""

    durable: bool = True
    stop_signal = signal.SIGINT  # "fast": SIGTERM would wait until every client has disconnected
    ports = 1

    @property
    def name(self) -> str:
        return "postgres" if self.durable else "postgres-throwaway"

    def check(self) -> None:
        binaries.POSTGRES.find()

    def prepare(self, folder: Path, account: Account | None) -> None:
        data, half_made, password = folder / "data", folder / "data.new", folder / "password"
        if account is None and os.geteuid() == 0:
            raise EmbeddedUnavailable(
                "PostgreSQL does not run as root, and root may not become another user here: run jobwire as one"
            )
        if data.exists():
            _forget_dead_postmaster(data)
            make_data_folder(data, account)
            return
        shutil.rmtree(half_made, ignore_errors=True)
        password.unlink(missing_ok=True)
        secret(password)
        # initdb needs a user name for the account that runs it. In a container, a folder's owner may have none.
        maker = account if account is None or has_name(account) else unprivileged_account()
        make_data_folder(half_made, maker)
        initdb = binaries.POSTGRES.find().with_name("initdb")
        command = [
            *(str(initdb), "--pgdata", str(half_made), "--username", "jobwire", "--pwfile", str(password)),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--no-instructions"),
            *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"),
            *([] if self.durable else ["--no-sync"]),
        ]
        run = subprocess.run(  # noqa: S603 - our own command line
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            preexec_fn=before_exec(maker, None, (initdb, half_made)),  # the keeper has no busy thread
        )
        if run.returncode != 0:
            said = run.stderr.strip() or run.stdout.strip()
            if "No space left on device" in said:
                raise OSError(errno.ENOSPC, said)
            raise EmbeddedFailed(f"initdb could not make {data}: {said}")
        make_data_folder(half_made, account)
        half_made.rename(data)
        if self.durable:
            _sync(folder)

    def command(self, folder: Path, ports: tuple[int, ...]) -> list[str]:
        settings = (
            *("-c", "listen_addresses=127.0.0.1", "-c", f"port={ports[0]}", "-c", "unix_socket_directories="),
            *("-c", "max_connections=200", "-c", "logging_collector=off", "-c", "log_destination=stderr"),
        )
        program = str(binaries.POSTGRES.find())
        return [program, "-D", str(folder / "data"), *settings, *(() if self.durable else _THROWAWAY)]

    def ready(self, folder: Path, ports: tuple[int, ...], pid: int) -> bool:
        """Reads the server's state from the eighth line of its pid file, as `pg_ctl` does."""
        try:
            lines = (folder / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > _READY_LINE and lines[0] == str(pid) and lines[_READY_LINE].strip() == "ready"

    def url(self, folder: Path, ports: tuple[int, ...]) -> str:
        password = (folder / "password").read_text()
        return f"postgresql://jobwire:{password}@127.0.0.1:{ports[0]}/postgres"


def _forget_dead_postmaster(data: Path) -> None:
    """Removes the pid file of a killed server where PostgreSQL itself would refuse to.

    PostgreSQL takes any process of that id for a running server: another program that got the id since, or the killed
    server itself as a zombie, if the first process of a container does not reap orphans.
    """
    file = data / "postmaster.pid"
    with suppress(FileNotFoundError):
        pid = int(file.read_text().partition("\n")[0] or 0)
        if not _serves(pid, data):
            file.unlink()


def _serves(pid: int, data: Path) -> bool:
    try:
        return started(pid) is not None and os.path.samefile(f"/proc/{pid}/cwd", data)
    except OSError:  # it has just ended, or belongs to another user
        return False


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
