"""Runs the blocks of one page in their order, as a reader would who types them into one session."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from jobwire import App, Connection, Flow, Queue, sync
from jobwire.cli import exit_codes, main

from .blocks import Block, same_output

BEFORE = Path(__file__).with_name("before")
_URL = re.compile(r"([\"'])(bullmq|bridgemq|monque|pgboss)\+(?:redis|rediss|mongodb|postgresql|embedded):[^\"']*\1")
ENDLESS = {"top", "bench"}
"""Commands that go on until a reader stops them."""
_OPENED = (App, Connection, Flow, Queue, sync.App, sync.Connection, sync.Flow, sync.Queue)


class Session:
    """The names, the folder and the stores of one page.

    Blocks with `await` run in one event loop, the others outside of it, so that blocking code can be shown too. URLs of
    servers are replaced by those of the test's own, and `worker.run()`, which does not end, by `run_until_idle()`.
    A block with a title is written into a file of that name; `before/<page>.py` defines the names that a page takes for
    granted.
    """

    def __init__(
        self, page: str, folder: Path, url_of: Callable[[str], str], printed: Callable[[], tuple[str, str]]
    ) -> None:
        self.folder, self._url_of, self._printed = folder, url_of, printed
        self._module = ModuleType("__main__of_" + re.sub(r"\W", "_", page))
        self._names = vars(self._module)
        sys.modules[self._module.__name__] = self._module
        self._loop = asyncio.Runner()
        self._in_background: list[Any] = []
        before = BEFORE / page.replace("/", "-").replace(".md", ".py")
        if before.exists():
            self._execute(before.read_text(), str(before), 0)
            for worker in self._names.get("background", ()):
                self._in_background.append(worker.__enter__())

    def close(self) -> None:
        try:
            for worker in reversed(self._in_background):
                worker.stop()
                worker.__exit__(None, None, None)
            for value in {id(one): one for one in self._names.values() if isinstance(one, _OPENED)}.values():
                closing = value.close()
                if inspect.isawaitable(closing):
                    self._loop.run(_awaited(closing))
        finally:
            self._loop.close()
            del sys.modules[self._module.__name__]
            for name, module in [*sys.modules.items()]:
                if str(getattr(module, "__file__", None) or "").startswith(f"{self.folder}{os.sep}"):
                    del sys.modules[name]

    def run(self, block: Block) -> None:
        if block.language == "console":
            self._console(block)
        elif block.language == "sh":
            self._commands(block)
        elif block.title:
            (self.folder / block.title).write_text(self._here(block.source))
        else:
            self._execute(block.source, block.where, block.line)

    def _here(self, source: str) -> str:
        source = _URL.sub(lambda found: repr(self._url_of(found[2])), source)
        return re.sub(r"\.run\(\)$", ".run_until_idle()", source, flags=re.MULTILINE)

    def _execute(self, source: str, where: str, line: int) -> None:
        tree = ast.parse(self._here(source), where)
        ast.increment_lineno(tree, line)
        code: CodeType = compile(tree, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        if code.co_flags & inspect.CO_COROUTINE:
            self._loop.run(eval(code, self._names))
        else:
            exec(code, self._names)

    def _console(self, block: Block) -> None:
        assert block.source.startswith("$ "), block.where
        for step in block.source.removeprefix("$ ").split("\n$ "):
            command, _, expected = step.partition("\n")
            output = self._output(command)
            assert same_output(output, expected), (
                f"{block.where}: {command}\nprinted:\n{output}\nthe page shows:\n{expected}"
            )

    def _commands(self, block: Block) -> None:
        """Runs the lines of jobwire. Each has to do its work, to find nothing to do, or to ask before it does it."""
        for line in block.source.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] != ["jobwire"] or words[1] in ENDLESS or "worker" in words[:2]:
                continue
            self._printed()
            code = main(words[1:])
            out, err = self._printed()
            asks = code == exit_codes.USAGE and "add --yes" in err
            assert asks or code in (exit_codes.DONE, exit_codes.NOTHING_FOUND), f"{block.where}: {line}\n{out}{err}"

    def _output(self, command: str) -> str:
        words = shlex.split(command)
        if words[0] == "jobwire" and words[1] != "worker" and not {"|", "<", ">", "||"} & {*words}:
            self._printed()
            code = main(words[1:])  # in this process, which saves the start of another one
            output, _ = self._printed()
            return output if code == 0 else f"{output}exit code {code}\n"
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False
        )
        output = done.stdout + done.stderr
        return output if done.returncode == 0 else f"{output}exit code {done.returncode}\n"


async def _awaited(closing: Any) -> None:
    await closing
