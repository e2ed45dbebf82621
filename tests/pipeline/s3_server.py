"""A real S3 server on loopback: SeaweedFS, from its wheel."""

from __future__ import annotations

import json
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipeline.spark_servers import awaited, started

KEY, SECRET = "jobwire", "jobwire-secret"
_SERVERS = ("master", "volume", "filer", "s3")


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """Runs the server until the block ends. Yields the environment by which its clients find it."""
    rights = {"actions": ["Admin", "Read", "Write", "List"], "credentials": [{"accessKey": KEY, "secretKey": SECRET}]}
    (folder / "identities.json").write_text(json.dumps({"identities": [{"name": "tests", **rights}]}))
    (folder / "data").mkdir()
    ports = _free_ports(2 * len(_SERVERS))
    line = [
        str(Path(sys.executable).with_name("weed")),
        "server",
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-filer",
        "-s3",
        "-s3.allowEmptyFolder=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.config={folder / 'identities.json'}",
        *(f"-{name}.port={port}" for name, port in zip(_SERVERS, ports, strict=False)),
        *(f"-{name}.port.grpc={port}" for name, port in zip(_SERVERS, ports[len(_SERVERS) :], strict=True)),
    ]
    endpoint = f"http://127.0.0.1:{ports[_SERVERS.index('s3')]}"
    with started(line, folder / "server.log") as server:
        awaited(lambda: _answers(f"{endpoint}/healthz"), f"an answer of {endpoint}")
        try:
            yield {
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
            }
        finally:
            server.process.kill()  # asked to end, it takes 15 s to leave its cluster


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
