"""Errors of embedded servers."""

from __future__ import annotations

import errno
import os
import pwd
from pathlib import Path

from jobwire.errors import JobwireError

_ELSEWHERE = "name another folder, as in bullmq+embedded:///path/to/folder"
_CAUSES = {
    errno.EROFS: f"its file system is read-only; {_ELSEWHERE}",
    errno.ENOSPC: f"the disk is full; make room there, or {_ELSEWHERE}",
    errno.EDQUOT: f"your quota of the disk is used up; make room there, or {_ELSEWHERE}",
    errno.ENAMETOOLONG: f"its name is too long; {_ELSEWHERE}",
}


class EmbeddedUnavailable(JobwireError):
    """No embedded server can run here."""


class EmbeddedFailed(JobwireError):
    """An embedded server did not start."""


def unusable(folder: Path, error: OSError) -> EmbeddedFailed:
    """Returns the error for a folder that the operating system refuses, with a remedy."""
    where = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else folder
    if error.errno in (errno.EACCES, errno.EPERM):
        cause = _no_permission(folder, where)
    elif error.errno in (errno.ENOTDIR, errno.EEXIST):
        cause = f"{_file_in_the_way(where)} is not a folder; move it away, or {_ELSEWHERE}"
    else:
        cause = _CAUSES.get(error.errno or 0) or f"{error.strerror or error} ({where}); {_ELSEWHERE}"
    return EmbeddedFailed(f"{folder} can't hold an embedded server: {cause}")


def _no_permission(folder: Path, where: Path) -> str:
    try:
        closed = next(path for path in (where, *where.parents) if path.exists())
        owner = closed.stat().st_uid
        inside = folder.exists()
    except PermissionError:
        return f"you have no permission to look into it; {_ELSEWHERE}"
    you = _name(os.geteuid())
    remedy = f"change its owner (sudo chown -R {you} {folder}), or " if inside else ""
    return f"{closed} belongs to {_name(owner)}, and you are {you}; {remedy}{_ELSEWHERE}"


def _file_in_the_way(where: Path) -> Path:
    return next((part for part in (where, *where.parents) if part.exists() and not part.is_dir()), where)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
