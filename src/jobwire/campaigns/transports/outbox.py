"""The default transport: appends each message to a file, as one line of JSON. It needs nothing installed.

Life of messages that are sent at the same moment:

1. The file is locked (`flock`). Whatever ends the process, the system releases the lock.
2. If the last line has no end, its writer was killed while writing it: the line is cut off. Its message has no
   receipt, so it is sent again.
3. The index reads the lines that were added since it was last used, by this process or by another.
4. If the index has a message's idempotency key, the receipt of the first send is returned.
5. The lines are appended in one write (`O_APPEND`), and on request forced to the disk (`fsync=true`).

The file alone decides what was sent. The index beside it (`outbox_index.py`) is made from it, and is made again if it
is lost: so it may be a step behind, and a kill between two steps changes nothing. A new file, such as after a log
rotation, begins without keys.

The file must be on a local disk: locks of network drives are not reliable.

A write to a local file is short and is done at once, in the event loop. Whatever may take longer is done in a thread:
a lock that another process holds, a write that is forced to the disk, an index that is far behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

import orjson

from jobwire import checks
from jobwire.campaigns.transports.outbox_index import OutboxIndex, last_line_end
from jobwire.campaigns.transports.transport import Message, Receipt, Retryable, TransportBroken

T = TypeVar("T")
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02
_MUCH = 100_000
"""Bytes of lines that other processes have written, which are read in some milliseconds."""
_UNUSABLE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENXIO}


class _TakesLonger(Exception):
    """Raised if a write can't be done at once."""


class OutboxTransport:
    """Appends messages to the file `address`. Several processes may use one file at the same time."""

    records_only: ClassVar[bool] = True

    def __init__(self, address: str = "outbox.jsonl", *, fsync: bool = False, lock_timeout: float = 20.0) -> None:
        self.path = Path(checks.text("address", address)).expanduser()
        self._fsync = checks.yes_or_no("fsync", fsync)
        self._lock_timeout = checks.seconds("lock_timeout", lock_timeout, minimum=0.001)
        self._index = OutboxIndex(self.path)
        self._thread = ThreadPoolExecutor(1, "outbox")
        self._calls: set[Future[Any]] = set()
        self._file = -1

    def __repr__(self) -> str:
        return f"<OutboxTransport {self.path}>"

    async def __aenter__(self) -> Self:
        """Opens the file, repairs its last line and brings the index up to date."""
        await self._in_thread(self._prepare)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._in_thread(self._close)

    async def send(self, message: Message) -> Receipt:
        """Appends the message, unless a message with its idempotency key is in the file already."""
        [receipt] = await self.send_many([message])
        return receipt

    async def send_many(self, messages: Sequence[Message]) -> Sequence[Receipt]:
        """Appends messages in one write, as `send` does each."""
        if not (self._fsync or self._calls):
            try:
                return self._append(messages, at_once=True)
            except _TakesLonger:
                pass
        return await self._in_thread(self._append, messages)

    async def _in_thread(self, call: Callable[..., T], *args: object) -> T:
        """Calls a method in the one thread that uses the file and its index. Nothing else uses them meanwhile, also if
        the caller is cancelled."""
        future = self._thread.submit(call, *args)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return await asyncio.wrap_future(future)

    def _prepare(self) -> None:
        with self._locked() as file:
            self._index.find_many(file, ())  # brings the index up to date

    def _close(self) -> None:
        self._index.close()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, messages: Sequence[Message], *, at_once: bool = False) -> Sequence[Receipt]:
        with self._locked(at_once=at_once) as file:
            if at_once and self._index.behind(file) > _MUCH:
                raise _TakesLonger
            receipts = self._index.find_many(file, {message.idempotency_key for message in messages})
            lines: dict[str, bytes] = {}
            ids = os.urandom(16 * len(messages)).hex()
            now = datetime.now(UTC)
            at = now.isoformat()
            for start, message in zip(range(0, len(ids), 32), messages, strict=True):
                key = message.idempotency_key
                if key not in receipts:
                    receipts[key] = Receipt(ids[start : start + 32], now)
                    line = {"id": ids[start : start + 32], "at": at, **message.fields()}
                    lines[key] = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
            if lines:
                self._index.expect(file, self._write(file, b"".join(lines.values())), lines)
            return [receipts[message.idempotency_key] for message in messages]

    def _write(self, file: int, lines: bytes) -> int:
        """Appends the lines, or nothing: lines that are cut short, as by a full disk, are taken back. Returns their
        offset."""
        before = os.fstat(file).st_size
        try:
            if os.write(file, lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if self._fsync:
                os.fsync(file)
        except OSError as error:
            os.ftruncate(file, before)
            raise Retryable(f"can't write to {self.path}: {error.strerror}", reason="OUTBOX_UNWRITABLE") from error
        return before

    @contextlib.contextmanager
    def _locked(self, *, at_once: bool = False) -> Generator[int]:
        """Yields the file, locked against other processes and ending with a whole line."""
        until = None if at_once else time.monotonic() + self._lock_timeout
        while True:
            file = self._opened()
            self._lock(file, until)
            if _is_at(file, self.path):
                break
            # The file was moved away, as by a log rotation, after it was opened.
            os.close(file)
            self._file = -1
        try:
            self._repair(file)
            yield file
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def _opened(self) -> int:
        if self._file < 0:
            try:
                self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                kind = TransportBroken if error.errno in _UNUSABLE else Retryable
                raise kind(f"can't open {self.path}: {error.strerror}", reason="OUTBOX_UNWRITABLE") from error
        return self._file

    def _lock(self, file: int, until: float | None) -> None:
        """Locks the file. It asks again and again, since a call that waits in the system can't be ended. Without a time
        it asks once."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if until is None:
                    raise _TakesLonger from None
                if time.monotonic() >= until:
                    text = f"{self.path} was locked by another process for {self._lock_timeout:g} s"
                    raise Retryable(text, reason="OUTBOX_LOCKED") from None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _repair(self, file: int) -> None:
        """Cuts off a last line that has no end."""
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            os.ftruncate(file, last_line_end(file, size))


def _is_at(file: int, path: Path) -> bool:
    """Returns True if the open file is still the one at the path."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
