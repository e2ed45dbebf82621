"""Tokens: read from a file or the environment, checked, and shown nowhere."""

from __future__ import annotations

import doctest
import logging

import pytest

from jobwire.campaigns.api import Caller, Role, Token, Tokens, campaign_api
from jobwire.errors import InvalidOption
from jobwire.serving import tokens as module

SECRET = "s3cret-s3cret-s3cret-s3cret"
OTHER = "another-s3cret-of-28-letters"


def test_a_file_has_a_table_for_each_token(tmp_path, caplog):
    file = tmp_path / "tokens.toml"
    file.write_text(f'[ann]\nrole = "admin"\ntoken = "{SECRET}"\n\n[ci]\nrole = "viewer"\ntoken = "{OTHER}"\n')
    file.chmod(0o600)
    tokens = Tokens.from_file(file)
    assert tokens.caller_of(SECRET) == Caller("ann", Role.ADMIN)
    assert tokens.caller_of(OTHER) == Caller("ci", Role.VIEWER)
    assert tokens.caller_of(SECRET[:-1]) is tokens.caller_of("") is tokens.caller_of("ünicode\ud800") is None
    assert caplog.records == []
    file.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        Tokens.from_file(file)
    assert "can be read by other users" in caplog.text
    assert SECRET not in caplog.text


def test_the_environment_has_name_role_and_token():
    tokens = Tokens.from_environment(
        {"JOBWIRE_CAMPAIGN_TOKENS": f" ann:admin:{SECRET}  ci:operator:{OTHER} "}, "JOBWIRE_CAMPAIGN_TOKENS"
    )
    assert tokens.caller_of(SECRET) == Caller("ann", Role.ADMIN)
    assert tokens.caller_of(OTHER) == Caller("ci", Role.OPERATOR)
    assert len(Tokens.from_environment({}, "JOBWIRE_CAMPAIGN_TOKENS")) == 0


@pytest.mark.parametrize(
    ("text", "field", "rule"),
    [
        (f'[ann]\nrole = "admn"\ntoken = "{SECRET}"', "ann.role", "did you mean admin?"),
        (f'[ann]\nrole = 1\ntoken = "{SECRET}"', "ann.role", "must be viewer, operator or admin"),
        (f'[ann]\ntoken = "{SECRET}"', "ann.role", "is missing"),
        ('[ann]\nrole = "admin"', "ann.token", "is missing"),
        ('[ann]\nrole = "admin"\ntoken = "short"', "ann.token", "at least 20 characters"),
        ('[ann]\nrole = "admin"\ntoken = "spaces are not allowed here"', "ann.token", "letters, digits"),
        ('[ann]\nrole = "admin"\ntoken = 5', "ann.token", "at least 20 characters"),
        (f'[ann]\nrole = "admin"\ntokn = "{SECRET}"', "tokn", "did you mean token?"),
        (f'ann = "{SECRET}"', "ann", "must be a table"),
        (f'[ann]\ntoken = {SECRET}', "tokens", "is not a TOML file"),
        (f'[a]\nrole = "admin"\ntoken = "{SECRET}"\n[b]\nrole = "viewer"\ntoken = "{SECRET}"', "b.token", "of a too"),
    ],
    ids=range(11),
)  # fmt: skip
def test_a_file_that_breaks_a_rule_is_refused_without_its_secrets(tmp_path, text, field, rule):
    file = tmp_path / "tokens.toml"
    file.write_text(text)
    with pytest.raises(InvalidOption) as refused:
        Tokens.from_file(file)
    assert refused.value.field == field
    assert rule in refused.value.rule
    assert "s3cret" not in str(refused.value)


def test_the_environment_is_refused_without_its_secrets():
    with pytest.raises(InvalidOption, match="NAME:ROLE:TOKEN") as refused:
        Tokens.from_environment({"JOBWIRE_CAMPAIGN_TOKENS": f"admin:{SECRET}"}, "JOBWIRE_CAMPAIGN_TOKENS")
    assert SECRET not in str(refused.value)


def test_nothing_shows_a_secret():
    token = Token("ann", "admin", SECRET)
    tokens = Tokens([token])
    for shown in (repr(token), repr(tokens), str(vars(tokens))):
        assert SECRET not in shown
        assert "ann" in shown


def test_two_tokens_of_one_name_are_refused():
    with pytest.raises(InvalidOption, match="two tokens of this name"):
        Tokens([Token("ann", "admin", SECRET), Token("ann", "viewer", OTHER)])


@pytest.mark.parametrize("tokens", [Tokens([]), [], {SECRET: "admin"}])
def test_an_api_is_open_only_if_that_is_asked_for(tokens):
    with pytest.raises(InvalidOption, match="tokens"):
        campaign_api("postgresql://localhost/app", tokens=tokens)
    with pytest.raises(TypeError, match="tokens"):
        campaign_api("postgresql://localhost/app")


def test_the_examples_in_the_docstrings_hold():
    results = doctest.testmod(module)
    assert (results.failed, results.attempted > 0) == (0, True), results
