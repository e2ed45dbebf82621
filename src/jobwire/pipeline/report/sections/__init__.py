"""The report's sections in their order, one module each: a finding in a sentence, and the charts that show it."""

from __future__ import annotations

from jobwire.pipeline.report.frames import Frames
from jobwire.pipeline.report.parts import Section
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.sections.campaigns import campaigns
from jobwire.pipeline.report.sections.changes import changes
from jobwire.pipeline.report.sections.failures import failures
from jobwire.pipeline.report.sections.forecast import forecast
from jobwire.pipeline.report.sections.latency import latency
from jobwire.pipeline.report.sections.names import names
from jobwire.pipeline.report.sections.quality import quality
from jobwire.pipeline.report.sections.retries import retries
from jobwire.pipeline.report.sections.runs import runs
from jobwire.pipeline.report.sections.targets import targets
from jobwire.pipeline.report.sections.throughput import throughput
from jobwire.pipeline.report.sections.workers import workers
from jobwire.pipeline.targets.outlook import Outlook

_PRESENT = (targets, changes, forecast)
_SECTIONS = (throughput, latency, failures, names, retries, workers, campaigns, quality, runs)


def sections(frames: Frames, period: Period, outlook: Outlook | None = None) -> list[Section]:
    """Returns every section; one without data states it. That of campaigns is left out if there are none at all, and
    those about the present if there is no outlook."""
    present = [section(frames, outlook) for section in _PRESENT] if outlook is not None else []
    found = (*present, *(section(frames, period) for section in _SECTIONS))
    return [section for section in found if section is not None]
