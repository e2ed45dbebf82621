"""A PostgreSQL server."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobwire.embedded import binaries
from jobwire.embedded.errors import EmbeddedFailed
from jobwire.embedded.privileges import Account, before_exec, unprivileged_account
from jobwire.embedded.process import started

_THROWAWAY = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
_READY_LINE = 7


@dataclass(frozen=True)
class Postgres:
    """One server, whose superuser `jobwire` has a random password: on loopback every local user can knock, and a
    superuser of PostgreSQL can run programs. Durable: the server's own defaults."""

    durable: bool = True
    stop_signal = signal.SIGINT  # "fast": SIGTERM would wait for every client to leave
    ports = 1

    @property
    def name(self) -> str:
        return "postgres" if self.durable else "postgres-throwaway"

    def check(self) -> None:
        binaries.POSTGRES.find()

    def account(self, folder: Path) -> Account | None:
        """Whoever owns the data, since PostgreSQL insists on being its owner."""
        account = unprivileged_account()
        data = folder / "data"
        if account is None or not data.exists():
            return account
        owner = data.stat()
        return Account(owner.st_uid, owner.st_gid) if owner.st_uid != 0 else account

    def prepare(self, folder: Path) -> None:
        data, half_made, password = folder / "data", folder / "data.new", folder / "password"
        if data.exists():
            _forget_dead_postmaster(data)
            return
        shutil.rmtree(half_made, ignore_errors=True)
        password.unlink(missing_ok=True)
        with os.fdopen(os.open(password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(16))
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
            preexec_fn=before_exec(self.account(folder), None),  # the keeper has no busy thread
        )
        if run.returncode != 0:
            raise EmbeddedFailed(f"initdb could not make {data}: {run.stderr.strip() or run.stdout.strip()}")
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
        """As `pg_ctl` finds out: the server keeps its state in the eighth line of its pid file."""
        try:
            lines = (folder / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > _READY_LINE and lines[0] == str(pid) and lines[_READY_LINE].strip() == "ready"

    def url(self, folder: Path, ports: tuple[int, ...]) -> str:
        password = (folder / "password").read_text()
        return f"postgresql://jobwire:{password}@127.0.0.1:{ports[0]}/postgres"


def _forget_dead_postmaster(data: Path) -> None:
    """Remove the pid file of a killed server where PostgreSQL would not dare to.

    It takes any process of that id for a server still running: one that was given the id since, or the dead server
    itself, if the first process of a container never reaps orphans.
    """
    file = data / "postmaster.pid"
    with suppress(FileNotFoundError):
        pid = int(file.read_text().partition("\n")[0] or 0)
        if not _serves(pid, data):
            file.unlink()


def _serves(pid: int, data: Path) -> bool:
    try:
        return started(pid) is not None and os.path.samefile(f"/proc/{pid}/cwd", data)
    except OSError:  # it ended just now, or is somebody else's
        return False


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
