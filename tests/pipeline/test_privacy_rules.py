"""Rules of privacy: their paths, what they make of values, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.options import parse_options
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.load.check import Check
from jobwire.pipeline.privacy.covering import GONE, Covered, cover
from jobwire.pipeline.privacy.record import has_rules, record_rules
from jobwire.pipeline.privacy.rules import Privacy, from_option, parse_rules
from jobwire.pipeline.privacy.scrub import Scrubber
from jobwire.pipeline.settings import parse_settings, read_settings

KEY = "a key of many characters"


def covered(payload: Any, **paths: str) -> Any:
    rules = parse_rules({"mail": {path.replace("S", "$", 1): action for path, action in paths.items()}}, KEY)
    return of(payload, rules)


def of(payload: Any, privacy: Privacy, queue: str = "mail") -> Any:
    rules = privacy.of_queue(queue)
    return payload if rules is None else cover(payload, "$", rules, Covered())


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("$.a", {"b": {"a": 2, "c": [{"a": 3}, {"d": 4}]}}),
        ("$.b.a", {"a": 1, "b": {"c": [{"a": 3}, {"d": 4}]}}),
        ("$.b.c[*].a", {"a": 1, "b": {"a": 2, "c": [{}, {"d": 4}]}}),
        ('$["b"]["c"]', {"a": 1, "b": {"a": 2}}),
        ("$..a", {"b": {"c": [{}, {"d": 4}]}}),
        ("$.b.*", {"a": 1, "b": {}}),
        ("$.absent.deeper", {"a": 1, "b": {"a": 2, "c": [{"a": 3}, {"d": 4}]}}),
        ("$", GONE),
    ],
)
def test_a_path_drops_what_it_stands_for_and_nothing_else(path: str, left: Any) -> None:
    payload = {"a": 1, "b": {"a": 2, "c": [{"a": 3}, {"d": 4}]}}
    assert of(payload, parse_rules({"mail": {path: "drop"}}, None)) == left


def test_a_deeper_rule_counts_before_one_on_the_way_to_it() -> None:
    privacy = parse_rules({"mail": {"$": "drop", "$.tenant": "keep", "$.who.city": "keep", "$.who.id": "hash"}}, KEY)
    made = of({"tenant": "acme", "secret": 1, "who": {"name": "Ann", "city": "Bonn", "id": 7}}, privacy)
    assert made == {"tenant": "acme", "who": {"city": "Bonn", "id": made["who"]["id"]}}
    assert made["who"]["id"].startswith("hash:")


def test_of_rules_for_one_place_the_name_of_the_queue_counts_then_the_exact_path_then_the_stricter_action() -> None:
    privacy = parse_rules({"*": {"$.a": "drop", "$..b": "keep", "$.b": "mask"}, "mail": {"$.a": "keep"}}, None)
    assert of({"a": 1, "b": 2}, privacy) == {"a": 1, "b": "***"}
    assert of({"a": 1, "b": 2}, privacy, "other") == {"b": "***"}
    both = parse_rules({"ma*": {"$.a": "mask"}, "*l": {"$.a": "drop"}}, None)
    assert of({"a": 1}, both) == {}


def test_equal_values_have_equal_hashes_and_another_key_gives_others() -> None:
    one, other = (parse_rules({"*": {"$.a": "hash"}}, key) for key in (KEY, KEY + "!"))
    first = of({"a": {"x": 1, "y": [2]}}, one)["a"]
    assert first == of({"a": {"y": [2], "x": 1}}, one, "another queue")["a"]
    assert first != of({"a": {"x": 1, "y": [3]}}, one)["a"]
    assert first != of({"a": {"x": 1, "y": [2]}}, other)["a"]
    assert first.split(":")[1] != of({"a": 1}, other)["a"].split(":")[1]


@given(st.text(min_size=3).filter(str.strip), st.text(), st.text())
def test_a_covered_text_is_found_in_any_other_text_as_it_is_and_as_json(value: str, before: str, after: str) -> None:
    scrub = Scrubber([value])
    if not scrub:
        return  # a number of a few digits
    said = f"{before} {value} {after}"
    if value.strip() not in f"{before} *** {after}":
        assert value.strip() not in (scrub.text(said) or "")
    within = json.loads(scrub.json(json.dumps({"log": [json.dumps({"to": value})]})) or "")
    assert json.loads(within["log"][0]) != {"to": value}


def test_a_number_is_found_where_it_stands_alone_and_short_values_are_left_alone() -> None:
    scrub = Scrubber([4915112345, 17, "ab", "O'Neil & Co"])
    assert scrub.text("no 4915112345, 149151123456, 17 ab") == "no ***, 149151123456, 17 ab"
    assert scrub.text("to=O%27Neil%20%26%20Co o'neil & co") == "to=*** ***"
    assert scrub.json('{"a":"O\\u0027Neil \\u0026 Co"}') == '{"a":"***"}'
    assert Scrubber(["ann+1@x.org"]).json('{"a":"ann\\u002b1@x.org"}') == '{"a":"***"}'
    assert scrub.json('{"a":4915112345,"opts":"{\\"n\\":4915112345}"}') == '{"a":"***","opts":"{\\"n\\":\\"***\\"}"}'


@pytest.mark.parametrize(
    ("privacy", "field", "rule"),
    [
        ({"mail": {"email": "mask"}}, "pipeline.privacy.mail", "it begins with $"),
        ({"mail": {"$.a[0]": "mask"}}, "pipeline.privacy.mail", "write [*] for all"),
        ({"mail": {"$.a..": "mask"}}, "pipeline.privacy.mail", "it can't be read from '..' on"),
        ({"mail": {"$.a": "maks"}}, "pipeline.privacy.mail: $.a", "did you mean mask?"),
        ({"mail": {"$.a": 1}}, "pipeline.privacy.mail: $.a", "must be keep, hash, mask or drop"),
        ({"mail": "drop"}, "pipeline.privacy.mail", "must be a table of paths"),
        ({"": {"$.a": "drop"}}, "pipeline.privacy", "must have a queue's name"),
        ({"mail": {"$.a": "hash"}}, "pipeline.privacy.mail: $.a", "needs the environment variable JOBWIRE_PRIVACY_KEY"),
        ([], "pipeline.privacy", "must be a table"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_place(
    privacy: Any, field: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JOBWIRE_PRIVACY_KEY", raising=False)
    with pytest.raises(InvalidOption) as refused:
        parse_settings({"privacy": privacy})
    assert refused.value.field == field
    assert rule in refused.value.rule


def test_a_key_that_can_be_guessed_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBWIRE_PRIVACY_KEY", "hunter2")
    with pytest.raises(InvalidOption, match="must have at least 16") as refused:
        parse_settings({"privacy": {"mail": {"$.a": "hash"}}})
    assert "hunter2" not in str(refused.value)


def test_settings_come_from_the_nearest_file_or_the_one_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jobwire.toml").write_text('[pipeline.privacy.mail]\n"$.to" = "mask"\n')
    (tmp_path / "pyproject.toml").write_text('[tool.jobwire.pipeline.privacy.mail]\n"$.cc" = "drop"\n')
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)

    assert [str(rule) for rule in read_settings().privacy.rules] == ["mail $.to = mask"]
    assert [str(rule) for rule in read_settings(tmp_path / "pyproject.toml").privacy.rules] == ["mail $.cc = drop"]
    with pytest.raises(InvalidOption, match="must be a file"):
        read_settings(tmp_path / "none.toml")


def test_a_file_that_cannot_be_read_is_refused_rather_than_taken_as_no_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.jobwire.pipeline.privacy.mail]\n"$.cc" = drop\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOption, match="must be valid TOML"):
        read_settings()


def test_a_lake_refuses_a_run_without_a_rule_that_it_was_written_under_unless_it_is_lifted(lake: str) -> None:
    masking, keeping = (parse_rules({"mail": {"$.to": action}}, None) for action in ("mask", "keep"))
    record_rules(Lake(lake), masking)
    with pytest.raises(InvalidOption, match=r'written with "\$.to" = "mask"'):
        record_rules(Lake(lake), Privacy())
    record_rules(Lake(lake), keeping)
    record_rules(Lake(lake), Privacy())


def test_rules_survive_the_way_to_sparks_processes_and_hide_their_key() -> None:
    privacy = parse_rules({"mail": {"$.to": "hash", '$["a b"]': "drop"}}, KEY)
    assert from_option(privacy.options["privacy_secret"]) == privacy
    assert KEY not in repr(privacy)
    assert parse_rules({"mail": {"$.to": "keep"}}, None).options == {}


@pytest.mark.parametrize("private", [True, False])
def test_rows_of_a_file_that_cannot_become_jobs_are_kept_without_values_if_the_queue_has_rules(private: bool) -> None:
    options = parse_options({"url": "bullmq+redis://localhost", "queue": "mail"})
    batch = pa.RecordBatch.from_pylist([{"id": "ann@example.org", "to": "ann@example.org", "priority": "ann"}])
    [checked] = Check(options, "run", lines=False, private=private)(iter([batch]))
    [row] = checked.to_pylist()
    assert row["reason"].startswith("priority: must be a whole number")
    assert ("ann" in str(row)) is not private


def test_a_lake_knows_which_queues_have_rules(lake: str) -> None:
    record_rules(Lake(lake), parse_rules({"mail*": {"$.to": "mask"}, "mailing": {"$.to": "keep"}}, None))
    assert [has_rules(Lake(lake), queue) for queue in ("mails", "other")] == [True, False]
