"""Tying a server to the process that started it, and running it as a user other than root.

Started by root, a server runs as the owner of its folder, or as an account without rights where that is root too.
PostgreSQL insists on it. For the others it is a precaution: a client of a server may be able to do what the server can
do.

The program, or the data, may lie below folders that only root can enter (`/root`, pytest's temporary folders). Then,
and only then, the server keeps one permission of root as an ambient capability: to enter and read any folder
(CAP_DAC_READ_SEARCH), or, where a container withholds that one, to ignore all permissions of files (CAP_DAC_OVERRIDE).
The alternative would be to open those folders to all users.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from jobwire.embedded.ownership import Account, owner_of

_PR_SET_PDEATHSIG = 1
_PR_SET_SECUREBITS = 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAP_DAC_OVERRIDE = 1
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION_3 = 0x20080522
_NOBODY = 65534


def server_account(folder: Path) -> Account | None:
    """Returns the account that the server of a folder runs as, or None for the account of this process.

    It is None unless root starts the server, and in containers where root may not change to another user.
    """
    if os.geteuid() != 0:
        return None
    owner = owner_of(folder)
    account = owner if owner.uid != 0 else unprivileged_account()
    return account if _may_become(account) else None


def unprivileged_account() -> Account:
    """Returns an account without rights, if possible one that has a name."""
    for name in ("nobody", "postgres"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    return Account(_NOBODY, _NOBODY)


def has_name(account: Account) -> bool:
    try:
        pwd.getpwuid(account.uid)
    except KeyError:
        return False
    return True


def _may_become(account: Account) -> bool:
    child = os.fork()
    if child == 0:
        try:
            _change_user(account)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySet(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def before_exec(
    account: Account | None, death_signal: signal.Signals | None, reach: Sequence[Path] = ()
) -> Callable[[], None]:
    """Returns a `preexec_fn` that changes to `account`, and asks the kernel for `death_signal` when the parent dies.

    The account gets access to the paths in `reach`, its program and its data. Only for a parent without busy threads,
    since it runs Python between fork and exec.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()
    capabilities = () if account is None else _capabilities(account, reach)

    def prepare() -> None:
        # A file that may not grow (ulimit -f) is an error then, which the server handles, and not the end of it.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if account is not None:
            _become(libc, account, capabilities)
        if death_signal is not None:  # after the change of user, which clears it
            libc.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
            if os.getppid() != parent:  # the parent died before the kernel was asked
                os._exit(1)

    return prepare


def _capabilities(account: Account, reach: Sequence[Path]) -> Sequence[int]:
    """Returns the capabilities that give the account access to the paths, the least powerful first."""
    if all(_can_enter(account, folder) for path in reach for folder in (*path.parents, *path.resolve().parents)):
        return ()
    if all(_can_enter(account, path) for path in reach):
        return (_CAP_DAC_READ_SEARCH, _CAP_DAC_OVERRIDE)
    return (_CAP_DAC_OVERRIDE,)


def _can_enter(account: Account, path: Path) -> bool:
    """True if plain permissions let the account enter a folder, or run a program."""
    found = path.stat()
    shift = 6 if found.st_uid == account.uid else 3 if found.st_gid == account.gid else 0
    return bool(found.st_mode >> shift & 1)


def _become(libc: ctypes.CDLL, account: Account, capabilities: Sequence[int]) -> None:
    if capabilities:
        # Capabilities then survive the change of user, and also count in access(2), which initdb calls and which
        # otherwise ignores the capabilities of every user but root.
        libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    _change_user(account)
    # Refused where a container withholds them all. Then the server has plain permissions only.
    for capability in capabilities:
        only = 1 << capability
        sets = (_CapabilitySet * 2)(_CapabilitySet(only, only, only), _CapabilitySet(0, 0, 0))
        header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
        if libc.capset(ctypes.byref(header), sets) == 0:
            libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability, 0, 0)
            return


def _change_user(account: Account) -> None:
    os.setgroups([])
    os.setgid(account.gid)
    os.setuid(account.uid)
