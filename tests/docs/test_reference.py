"""The tables of the reference agree with the program."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import jobwire
from jobwire import Backoff, JobwireError, Keep, NewJob, NotSupported, Parent, Queue, Target, Unique, errors, testing
from jobwire.options import JobOptions
from jobwire.protocols import PROTOCOLS, REDIS_TRANSPORTS
from jobwire.url_options import SENTINELS_OWN

from .blocks import DOCS, ROOT

SAMPLES: dict[str, Any] = {
    "name": "welcome",
    "priority": 1,
    "delay": 60,
    "run_at": datetime(2030, 1, 1, tzinfo=UTC),
    "attempts": 3,
    "backoff": Backoff.exponential(1),
    "timeout": 30,
    "keep_completed": 10,
    "keep_failed": Keep(age=60),
    "unique": Unique("order-17"),
    "lifo": True,
    "parent": Parent("1", "reports"),
    "target": Target(server="one"),
    "expires": 3600,
}
IDS = {"any": "order-17", "uuid": "5b2a8a1c-58a5-4b5b-9df7-4f6d2a0f5c11", "objectid": "65f0c1a2b3c4d5e6f7a8b9c0"}


def rows(page: str, first: str) -> dict[str, list[str]]:
    """Returns the cells of the table whose first heading is given, by the name in their first cell."""
    lines = (DOCS / page).read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} |"))
    found: dict[str, list[str]] = {}
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]) or [cells[0]], cells[1:])
    return found


def test_the_table_has_every_option_of_add() -> None:
    own = {name for name in inspect.signature(Queue.add).parameters if name not in ("self", "options")}
    assert {*rows("add-options.md", "option")} - {"option", "---"} == own | {*JobOptions.__annotations__}


async def test_each_protocol_takes_the_options_that_the_table_has_and_refuses_the_others(
    jobwire_every_url: str,
) -> None:
    table = rows("add-options.md", "option")
    column = [cell.strip("`") for cell in table["option"]].index(jobwire_every_url.partition("+")[0].partition(":")[0])
    shown = {option: cells[column] for option, cells in table.items() if option in {*SAMPLES, "id", "transaction"}}
    taken: dict[str, str] = {}
    async with Queue("emails", jobwire_every_url) as queue:
        for option, value in {"id": IDS[queue.capabilities.ids], **SAMPLES, "transaction": object()}.items():
            try:
                await queue.add(1, **{option: value})
            except NotSupported:
                taken[option] = "–"
            except JobwireError:  # understood, and refused for another reason: no such parent, or not a transaction
                taken[option] = "yes"
            else:
                taken[option] = "yes"
    assert taken == shown


def test_the_options_of_urls_are_those_of_the_program() -> None:
    table = rows("settings.md", "option")
    for slug, protocol in PROTOCOLS.items():
        shown = {option for option, cells in table.items() if cells[0] == f"`{slug}`"}
        assert shown == {*protocol.url_options}, slug
    assert {*SENTINELS_OWN, "tls"} < {*table}
    transports = rows("settings.md", "protocol")
    for slug, protocol in PROTOCOLS.items():
        assert {*re.findall(r"`([\w+]+)`", transports[slug][0])} == {*protocol.transports}, slug
    assert {*re.findall(r"`([\w+]+)`", transports["bullmq"][0])} == {*REDIS_TRANSPORTS}


def test_the_environment_variables_are_those_of_the_program() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "src" / "jobwire").rglob("*.py"))
    ours = {*re.findall(r"\bJOBWIRE_[A-Z_]+\b", sources)}
    listed = {name for name in rows("settings.md", "variable") if name.startswith("JOBWIRE_")}
    assert listed == ours


def test_every_public_name_is_in_the_reference() -> None:
    pages = "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    shown = {*re.findall(r"^::: (jobwire\.\S+)$", pages, re.MULTILINE)}
    for module in (jobwire, testing):
        public = {f"{module.__name__}.{name}" for name in module.__all__ if name != "__version__"}
        errors_page = {name for name in public if name.rpartition(".")[2] in vars(errors)}
        assert public - errors_page - shown == set()
    without_spark = {name for name in shown if not name.startswith("jobwire.pipeline")}
    assert [name for name in without_spark if not exists(name)] == []


def exists(name: str) -> bool:
    """Returns True if the name, or the module of the name, can be imported."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


ERROR = re.compile(r"^class (\w+)\((?:JobwireError|\w+Refused|Unrecoverable|WrongState|Transport\w+)\b", re.MULTILINE)


def explained() -> Iterator[type[JobwireError]]:
    """Yields every class of error that a user can see: those of backends are shown as their bases."""
    for path in sorted((ROOT / "src" / "jobwire").rglob("*.py")):
        home = path.relative_to(ROOT / "src").with_suffix("").parts
        if "backends" not in home:
            for name in ERROR.findall(path.read_text()):
                yield getattr(importlib.import_module(".".join(home)), name)


def test_every_error_has_its_section() -> None:
    page = (DOCS / "errors.md").read_text()
    sections = {*re.findall(r"^##+ (\w+)$", page, re.MULTILINE)}
    kinds = {JobwireError, *explained()}
    assert len(kinds) > 40
    assert {kind.__name__ for kind in kinds} == sections - {"Calls", "Campaigns"}


def test_an_error_links_to_its_section_and_a_users_own_to_that_of_its_base() -> None:
    class NoSuchAddress(jobwire.Unrecoverable):
        """There is no such address."""

    assert NoSuchAddress().docs == f"{errors.DOCS}errors/#unrecoverable"
    assert jobwire.NotSupported("BullMQ", "timeouts").docs == f"{errors.DOCS}errors/#notsupported"
    assert f"site_url: {errors.DOCS}\n" in (ROOT / "mkdocs.yml").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 0}, "attempts: must be at least 1 (got 0)"),
        ({"atempts": 3}, "atempts: is not an option of a job; did you mean attempts? (got 3)"),
        ({"data": {1}}, "data: set is not a JSON value; send sorted(value) (got 'builtins.set')"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at: must have a time zone, e.g. datetime.now(timezone.utc) (got "),  # noqa: DTZ001
    ],
)
async def test_the_page_of_errors_has_real_messages(options: dict[str, Any], message: str) -> None:
    with pytest.raises(jobwire.InvalidOption) as refusal:
        await Queue("emails", "memory:").add_job(NewJob(**{"data": 1, **options}))
    assert str(refusal.value).startswith(message)
    assert message.removesuffix("(got ") in (DOCS / "errors.md").read_text()
