"""Runs shell lines one after the other and prints as JSON what came of each, then programs, whose output comes first.

Those of `jobwire pipeline` run in this process and share the Spark that the first of them starts: starting one is most
of the time that each would take.
"""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

from jobwire.cli import main

PIPELINE = "jobwire pipeline "


def ran(line: str) -> tuple[int, str, str]:
    """Returns the exit code and both outputs."""
    if not line.startswith(PIPELINE):
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(shlex.split(line)[1:])
    return code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    results = [ran(line) for line in json.loads(sys.argv[1])]
    for program in sys.argv[2:]:
        exec(program, {})
    print(json.dumps(results))
