"""Our JSON beside the JSON of a real Node.js: the same bytes, thousands of values, one Node process per test."""

from __future__ import annotations

import math
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jobwire.codec import dumps, loads
from jobwire.errors import InvalidOption
from jobwire.javascript_json import MAX_SAFE_INTEGER

SEED = 20_300_101
SPECIAL_FLOATS = [
    0.0,
    -0.0,
    1.0,
    1e15,
    1e16,
    1e17,
    1e20,
    1e21,
    1e22,
    1e-3,
    1e-4,
    1e-5,
    1e-6,
    1e-7,
    5e-324,
    0.1,
    2.0**53,
]
SPECIAL_FLOATS += [2.0**55, 123456789012345680000.0, 1.7976931348623157e308, 2.2250738585072014e-308, 0.1 + 0.2, 1 / 3]


def node(tmp_path: Path, script: str, lines: list[str]) -> list[str]:
    """Each line through the script's function `each`, in one process."""
    source = tmp_path / "peer.mjs"
    source.write_text(
        script + "\nimport { readFileSync } from 'node:fs';\n"
        "const lines = readFileSync(0, 'utf8').split('\\n');\n"
        "process.stdout.write(lines.map(each).join('\\n'));\n"
    )
    done = subprocess.run(
        ["node", str(source)], input="\n".join(lines).encode(), capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().split("\n")


def random_float(rng: random.Random) -> float:
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice(SPECIAL_FLOATS) * rng.choice([1, -1])
    if kind == 1:
        return round(rng.uniform(-1e6, 1e6), rng.randrange(6))
    if kind == 2:
        return float(rng.randrange(-(10 ** rng.randrange(1, 24)), 10**22))
    if kind == 3:
        return rng.uniform(-1, 1) * 10.0 ** rng.randrange(-12, 24)
    number = math.nan
    while not math.isfinite(number):
        (number,) = struct.unpack(">d", rng.randbytes(8))
    return number


def random_text(rng: random.Random) -> str:
    units = rng.choice([range(0x20, 0x7F), range(0x20), range(0x2FFF), range(0xD700, 0xE000), range(0x1F600, 0x1F650)])
    return "".join(chr(rng.choice(units)) for _ in range(rng.randrange(12)))


def random_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(8 if depth < 4 else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.randrange(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER + 1) >> rng.randrange(54)
    if kind in (2, 3):
        return random_float(rng)
    if kind in (4, 5):
        return random_text(rng)
    if kind == 6:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(6))]
    # A letter in front: JavaScript moves keys that look like numbers, which is the one documented difference.
    return {"k" + random_text(rng): random_value(rng, depth + 1) for _ in range(rng.randrange(6))}


def test_every_value_has_the_bytes_that_node_gives_it(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    ours = [dumps(random_value(rng)).decode() for _ in range(5000)]
    theirs = node(tmp_path, "const each = line => JSON.stringify(JSON.parse(line));", ours)
    assert theirs == ours


def test_every_float_has_the_digits_that_node_gives_the_same_eight_bytes(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    floats = SPECIAL_FLOATS + [random_float(rng) for _ in range(10_000)]
    script = "const each = line => JSON.stringify(Buffer.from(line, 'hex').readDoubleBE());"
    theirs = node(tmp_path, script, [struct.pack(">d", number).hex() for number in floats])
    assert theirs == [dumps(number).decode() for number in floats]


def test_every_text_is_quoted_as_node_quotes_the_same_utf16_units(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    every_unit = [chr(unit) for unit in range(0x10000)]
    texts = every_unit + [random_text(rng) for _ in range(3000)]
    script = "const each = line => JSON.stringify(Buffer.from(line, 'hex').toString('utf16le'));"
    theirs = node(tmp_path, script, [text.encode("utf-16-le", "surrogatepass").hex() for text in texts])
    assert theirs == [dumps(text).decode() for text in texts]


def test_node_moves_keys_that_look_like_indexes_and_we_keep_their_order(tmp_path: Path) -> None:
    ours = dumps({"b": 1, "7": 2, "a": 3}).decode()
    (theirs,) = node(tmp_path, "const each = line => JSON.stringify(JSON.parse(line));", [ours])
    assert (ours, theirs) == ('{"b":1,"7":2,"a":3}', '{"7":2,"b":1,"a":3}')
    assert loads(ours) == loads(theirs)


def test_we_read_what_node_writes_and_refuse_what_node_would_change(tmp_path: Path) -> None:
    script = "const each = line => JSON.stringify(eval(`(${line})`));"
    sources = ["{a: '\\ud83d', b: [0.1, 1e21, -0]}", "[NaN]", "9007199254740993"]
    lone, null, neighbour = node(tmp_path, script, sources)
    assert loads(lone) == {"a": "\ud83d", "b": [0.1, 1e21, 0]}
    assert (loads(null), loads(neighbour)) == ([None], 9007199254740992)
    for changed in ([math.nan], 9007199254740993):
        with pytest.raises(InvalidOption):
            dumps(changed)
