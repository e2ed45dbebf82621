"""Programs of tests that are there in milliseconds: a process imports a program once, and forks a run of it whenever it
is asked to.

A run is a process of its own that nothing has been opened in. It has the outputs that it was given, ends as any program
does, and can be killed. What it saves is the time in which Python starts and imports, half a second of a core.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class Run:
    """One run of a program."""

    pid: int
    _answer: int

    def kill(self) -> None:
        """Kills the run. If it has ended, nothing happens."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Waits for the end of the run. Returns its exit code as `subprocess` has it. To be called once."""
        with os.fdopen(self._answer) as answer:
            return int(answer.readline())


class WarmProgram:
    """A program whose file defines `main`. It is imported by the first run."""

    def __init__(self, path: Path, *options: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, *options, __file__, str(path), str(theirs.fileno())]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def start(self, *arguments: object, stdout: int, stderr: int = 2) -> Run:
        """Calls `main` with the arguments as texts, in a process that writes to the two descriptors."""
        answer, told = os.pipe()
        try:
            socket.send_fds(self._socket, [json.dumps([*map(str, arguments)]).encode()], [stdout, stderr, told])
        finally:
            os.close(told)
        pid = b""
        while not pid.endswith(b"\n"):  # byte by byte, as the exit code follows
            read = os.read(answer, 1)
            assert read, "the process that forks has ended"
            pid += read
        return Run(int(pid), answer)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


def _load(path: str) -> ModuleType:
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(path: str, descriptor: int) -> None:
    program = _load(path)
    asked = socket.socket(fileno=descriptor)
    while True:
        message, descriptors, _, _ = socket.recv_fds(asked, 65536, 3)
        if not message:
            break
        if os.fork():
            for each in descriptors:
                os.close(each)
            _reap(os.WNOHANG)
            continue
        asked.close()
        out, err, answer = descriptors
        if pid := os.fork():  # this process waits for the run
            os.close(out)
            os.close(err)
            os.write(answer, f"{pid}\n".encode())
            os.write(answer, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
            os._exit(0)
        os.close(answer)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        program.main(*json.loads(message))
        return
    _reap()


def _reap(options: int = 0) -> None:
    """Leaves no zombies. The times of all runs are then among those of this process."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
