"""Tying a server to the process that started it, and running it as somebody other than root.

PostgreSQL refuses to run as root. Started by root, it therefore runs as an unprivileged account. Its data and its
program may lie below folders that only root can enter (`/root`, pytest's temporary folders), so one permission is kept,
CAP_DAC_OVERRIDE, as an ambient capability. Opening those folders to everyone would be the alternative.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
from collections.abc import Callable
from dataclasses import dataclass

_PR_SET_PDEATHSIG = 1
_PR_SET_SECUREBITS = 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True)
class Account:
    """A user and group to run as."""

    uid: int
    gid: int


def unprivileged_account() -> Account | None:
    """Who a server runs as when root starts it; None for everyone else. It needs a name: `initdb` looks it up."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise OSError("PostgreSQL does not run as root, and this machine has neither a user 'postgres' nor 'nobody'")


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySet(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def before_exec(account: Account | None, death_signal: signal.Signals | None) -> Callable[[], None]:
    """A `preexec_fn` that changes to `account`, and asks the kernel for `death_signal` when the parent dies.

    Only for a parent without busy threads: it runs Python between fork and exec.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def prepare() -> None:
        if account is not None:
            _become(libc, account)
        if death_signal is not None:  # after the change of user, which clears it
            libc.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
            if os.getppid() != parent:  # the parent died before the kernel was asked
                os._exit(1)

    return prepare


def _become(libc: ctypes.CDLL, account: Account) -> None:
    # Capabilities then survive the change of user, and count when the program asks the kernel what it may open:
    # initdb does, with access(2), which otherwise forgets the capabilities of everyone but root.
    libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setgid(account.gid)
    os.setuid(account.uid)
    only = 1 << _CAP_DAC_OVERRIDE
    sets = (_CapabilitySet * 2)(_CapabilitySet(only, only, only), _CapabilitySet(0, 0, 0))
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    # Refused where a container withholds the capability; then the server gets as far as plain permissions let it.
    if libc.capset(ctypes.byref(header), sets) == 0:
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0)
