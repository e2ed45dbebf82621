"""Decides without Spark whether a source has anything new since it was last ingested.

Before a source is ingested, it is looked at (`AnySource.look`). The look is recorded when the ingest has succeeded. A
source that looks the same at the next ingest has changed nothing since before that one began.

A look does not see every change: a store may replace the data of a job and report no event. A source that looks the
same is ingested after a day in any case.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from jobwire.errors import StoreUnavailable
from jobwire.pipeline.history.snapshots import AnySource
from jobwire.pipeline.lake.lake import Lake, folder_of

AT_LEAST_EVERY = timedelta(days=1)
_PAUSES = (0.2, 1.0)
"""Seconds before a store that can't be reached is tried again: a server that restarts is back by then."""

_log = logging.getLogger("jobwire.pipeline")


@dataclass(frozen=True)
class Look:
    """A source as it was at some time. `text` is None if it could not be looked at."""

    text: str | None
    at: datetime
    offsets: Any = None
    """The end of its stream at the end of the ingest."""
    failure: StoreUnavailable | None = None
    """The error of a store that could not be reached at any try."""


def take_look(source: AnySource) -> Look:
    """Looks at a source. A store that can't be reached is tried again after a moment. Any other error is left to the
    ingest, which may not meet it."""
    now = datetime.now(UTC)
    for pause in (*_PAUSES, None):
        try:
            return Look(source.look(), now)
        except StoreUnavailable as error:
            if pause is None:
                return Look(None, now, failure=error)
            time.sleep(pause)
        except Exception as error:  # whatever it is, the ingest of this source reports it, and the others continue
            _log.debug("%s was not looked at: %s; it is ingested", source.name, error)
            break
    return Look(None, now)


def last_look(lake: Lake, source: AnySource) -> Look | None:
    """Returns the look before the last ingest that succeeded, or None if there was none."""
    found: Mapping[str, Any] | None = lake.files.read(_file(source))
    return None if found is None else Look(found["look"], datetime.fromisoformat(found["at"]), found["offsets"])


def has_news(look: Look, last: Look | None) -> bool:
    """Returns whether there may be something new since the last ingest."""
    return last is None or look.text is None or look.text != last.text or look.at - last.at >= AT_LEAST_EVERY


def record_look(lake: Lake, source: AnySource, look: Look, offsets: Any) -> None:
    """Records a look whose ingest has succeeded."""
    lake.files.write(_file(source), {"look": look.text, "at": look.at.isoformat(), "offsets": offsets})


def _file(source: AnySource) -> str:
    return f"checkpoints/looks/{folder_of(source.name)}.json"
