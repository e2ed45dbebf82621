"""The real Node peers, driven by short scripts."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NODE = Path(sys.prefix) / "bin" / "node"
PEERS = Path(__file__).parents[2] / "interop" / "node"

_FRAME = """
const { Queue, Worker, FlowProducer, QueueEvents, Job, UnrecoverableError } = require(process.env.PEER);
const connection = JSON.parse(process.env.CONNECTION);
const prefixes = JSON.parse(process.env.PREFIXES);
const say = (value) => process.stdout.write(JSON.stringify(value) + "\\n");
// A Queue writes its settings unasked, some time after it was made; `settled` waits for that.
const made = [];
const queueOf = (prefix, name = "q") => made[made.push(new Queue(name, { connection, prefix })) - 1];
const settled = () => Promise.all(made.map((queue) => queue.closing || queue.isPaused()));
const until = async (test) => { while (!(await test())) await new Promise((go) => setTimeout(go, 5)); };
// Runs jobs of a queue one at a time until `times` of them have finished.
const work = async (prefix, times, handler, name = "q") => {
  const worker = new Worker(name, handler, { connection, prefix, autorun: false });
  worker.on("error", () => {});
  let done = 0;
  const seen = new Promise((go) => {
    const count = () => { done += 1; if (done >= times) go(); };
    worker.on("completed", count); worker.on("failed", count);
  });
  worker.run(); await seen; await worker.close();
};
(async () => { %s })().then(settled).then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
"""


async def node(url: str, prefixes: list[str], body: str, peer: str = "bullmq") -> list[Any]:
    """Run the body in Node beside the named package; what it `say`s, in order."""
    address = urlsplit(url)
    env = {
        **os.environ,
        "PEER": peer,
        "CONNECTION": json.dumps({"host": address.hostname, "port": address.port, "password": address.password}),
        "PREFIXES": json.dumps(prefixes),
    }
    process = await asyncio.create_subprocess_exec(
        NODE, "-e", _FRAME % body, cwd=PEERS, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return [json.loads(line) for line in out.splitlines()]
