"""The report's section on campaigns tells what their tables hold."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta

import pandas as pd
import pytest

from jobwire.pipeline.report import Period, write_report
from jobwire.pipeline.report.palette import DARK
from pipeline import report_samples as samples
from pipeline.report_page import Page

pytestmark = pytest.mark.xdist_group("report")


def written(tables, folder, period=samples.WEEK):
    return Page.at(write_report(tables, folder, title="Report", period=period))


def only(tables, campaign):
    return {name: table.query(f"campaign_id == '{campaign}'") for name, table in tables.items() if "campaign" in table}


@pytest.fixture(scope="module")
def tables():
    return samples.campaigns()


@pytest.fixture(scope="module")
def page(tables, tmp_path_factory):
    return written(tables, tmp_path_factory.mktemp("campaigns"))


def test_the_finding_sums_messages_failures_and_silent_channels_up(page, tables):
    hours, channels = tables["campaign_hourly"], tables["channel_health"]
    sent, failed = hours["sent"].sum(), hours["failed"].sum()
    reasons = sum((Counter(json.loads(text)) for text in tables["campaign_daily"]["failures"]), Counter())
    silent = channels["silent_since"].dropna()
    during = (silent >= samples.WEEK.start).sum()

    assert page.findings["campaigns"] == (
        f"{sent / 1e3:.0f}k messages of 3 campaigns were sent and {100 * failed / (sent + failed):.1f} % failed, "
        f"mainly {reasons.most_common(1)[0][0]}; {during} channels went silent"
    )
    assert f"{len(silent) - during} channels were silent already." in page.text
    for reason, number in reasons.items():
        assert reason in page.texts
        assert any(text.startswith((f"{number:,} ·", f"{number} ·")) for text in page.texts), reason


def test_a_campaign_that_exceeded_its_rate_is_named_with_the_minute(page, tables):
    hours = tables["campaign_hourly"]
    [fast] = hours[hours["busiest_sent"] > hours["delivery_rate"]].to_dict("records")

    at = fast["busiest_minute"]
    told = (
        f"{fast['campaign']} exceeded its rate: {fast['busiest_sent']} messages in the minute of {at.day} {at:%b %H:%M}"
    )
    assert f"{told}, where {fast['delivery_rate']} are allowed." in page.text


def test_a_campaign_within_its_rate_is_said_to_be(tables, tmp_path):
    page = written(only(tables, "c1"), tmp_path)

    near = "No campaign exceeded its rate; nearest was Spring sale with 60 messages in its busiest minute, of 60."
    assert near in page.text
    assert "went silent" not in page.findings["campaigns"]


def test_each_campaign_has_a_row_and_a_test_is_marked(page, tables):
    hours = tables["campaign_hourly"].query("campaign_id == 'c3'")
    sent, failed = hours["sent"].sum(), hours["failed"].sum()

    share = f"{100 * failed / (sent + failed):.1f} %"
    assert ["Trial (TEST)", f"{sent:,}", str(failed), share, str(2 * failed), "30", "30"] in page.rows


def test_silent_channels_are_listed_with_the_newest_first(page, tables):
    rows = [row for row in page.rows if row and row[0].startswith("@channel_")]
    newest = tables["channel_health"].sort_values("silent_since", ascending=False).iloc[0]

    since = newest["silent_since"]
    assert len(rows) == 10
    assert rows[0][0] == newest["channel"]
    assert rows[0][1].startswith(f"{since.day} {since:%b %H:%M}, ")
    assert rows[0][3:6] == [f"{newest['failures']} of 9", str(newest["consecutive_errors"]), "active"]


def test_without_campaigns_the_section_is_left_out(tables, tmp_path):
    empty = {name: table.head(0) for name, table in tables.items()}

    assert "campaigns" not in written(empty, tmp_path).findings


def test_a_period_without_messages_is_said_to_have_none(tables, tmp_path):
    health = {"channel_health": tables["channel_health"].assign(silent_since=None)}

    assert written(health, tmp_path).findings["campaigns"] == "No message of a campaign was sent in this period"


def test_names_that_look_like_markup_and_hours_alone_are_drawn(tables, tmp_path):
    odd = only(tables, "c2")
    odd = {name: table.assign(campaign="<b>&\u202e" + "x" * 90) for name, table in odd.items()}
    month = Period(samples.MONDAY, samples.MONDAY + timedelta(days=31))
    for number, period in enumerate((samples.WEEK, month, samples.MOMENT)):
        page = written(odd, tmp_path / str(number), period)
        assert "b" not in page.tags
        assert {paint for paint in page.paints if paint not in ("none", "transparent")} <= set(DARK)
    nothing_sent = odd["campaign_hourly"].assign(sent=0, busiest_sent=0, busiest_minute=pd.NaT, delivery_rate=None)
    page = written({"campaign_hourly": nothing_sent}, tmp_path / "none")
    assert page.findings["campaigns"].startswith("None of 71 messages of <b>&xx")
