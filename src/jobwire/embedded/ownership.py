"""Files and folders of an embedded server. What root makes in a folder belongs to the owner of that folder.

Root may run jobwire once in the folder of another user's project, by `sudo` or in a container. The owner of the project
must be able to use the same server afterwards.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Account:
    """A user and group to run as."""

    uid: int
    gid: int


def owner_of(path: Path) -> Account:
    found = path.stat()
    return Account(found.st_uid, found.st_gid)


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Makes the folder and those above it, as far as they don't exist."""
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent)
    try:
        path.mkdir(mode)
    except FileExistsError:  # another process was first, or it is a file
        if not path.is_dir():
            raise
        return
    if os.geteuid() == 0 and (owner := owner_of(path.parent)).uid != 0:
        os.chown(path, owner.uid, owner.gid, follow_symlinks=False)


def open_file(path: Path, flags: int) -> int:
    """Returns a descriptor of a file that only its owner can read. Programs inherit it only if it is passed to them.

    Links are not followed: with a link, the owner of the folder could make root write to any file of the machine.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if os.geteuid() == 0 and (owner := owner_of(path.parent)).uid != 0:
            made = os.fstat(descriptor)
            if made.st_uid == 0 and made.st_nlink == 1:  # a hard link could point to a file of root's elsewhere
                os.fchown(descriptor, owner.uid, owner.gid)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def give(path: Path, account: Account) -> None:
    """Changes the owner of everything in a folder, then of the folder itself."""
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            give(Path(entry.path), account)
        else:
            os.chown(entry.path, account.uid, account.gid, follow_symlinks=False)
    os.chown(path, account.uid, account.gid, follow_symlinks=False)


def make_data_folder(path: Path, account: Account | None) -> None:
    """Makes the folder that a server writes to, owned by the account that the server runs as."""
    make_folder(path, 0o700)
    if account is not None and path.stat().st_uid != account.uid:
        give(path, account)


def adopt(folder: Path) -> None:
    """Gives files that root made in another user's folder to that user. Safe, because `folder` itself belongs to root
    until then, so that no other user can have put links into it."""
    if os.geteuid() == 0 and folder.stat().st_uid == 0 and (owner := owner_of(folder.parent)).uid != 0:
        give(folder, owner)


def secret(path: Path) -> str:
    """Returns the random text in a file. The first call makes it, under a lock."""
    with suppress(FileNotFoundError):
        if kept := path.read_text():
            return kept
    fresh = path.with_name(f"{path.name}.new")
    with os.fdopen(open_file(fresh, os.O_WRONLY | os.O_TRUNC), "w") as file:
        file.write(secrets.token_hex(24))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return path.read_text()
