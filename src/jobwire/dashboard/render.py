"""Turns a view into a page, or into the parts of it that change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from string import Template
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.links import OVERVIEW, link
from jobwire.dashboard.values import brief, capped, named, visible
from jobwire.look.palette import DARK, FONT, NAMED, variables
from jobwire.look.words import ago, measured, spoken
from jobwire.serving.tokens import Role

_AREAS = {
    "campaigns.html": "campaigns",
    "campaign.html": "campaigns",
    "campaign_preview.html": "campaigns",
    "history.html": "history",
}
"""The area of each page that is not about queues."""
LIVE = "live_"
"""Blocks of templates whose names begin so are sent again when they have changed."""


@dataclass(frozen=True, slots=True)
class View:
    """The content of a page: its template, its title, which states the finding, and its values."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", visible(self.title))


def moment(at: datetime | None) -> Markup:
    """Returns a time as the distance from now, with the whole time beside it for those who need it."""
    if at is None:
        return Markup('<span class="quiet">–</span>')
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), _whole(at), ago(at))


def clock(at: datetime | None) -> Markup:
    """Returns a time of day in UTC, with the day if that is not today."""
    if at is None:
        return Markup("")
    time, now = at.astimezone(UTC), datetime.now(UTC)
    shown = f"{time:%H:%M:%S}" if time.date() == now.date() else f"{time.day} {time:%b %H:%M:%S}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), _whole(time), shown)


def _whole(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


_environment = Environment(
    loader=PackageLoader("jobwire.dashboard", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_globals: dict[str, Any] = {
    "link": link,
    "moment": moment,
    "clock": clock,
    "spoken": spoken,
    "measured": measured,
    "counted": counted,
    "brief": brief,
    "capped": capped,
    "named": named,
    "visible": visible,
    "OVERVIEW": OVERVIEW,
    "Role": Role,
}
_environment.globals.update(_globals)  # pyright: ignore[reportUnknownMemberType] Jinja has no type for it


def page(view: View, call: Call) -> Response:
    """Returns the whole page."""
    html = _environment.get_template(view.template).render(_values(view, call))
    # A text from a store may hold half of a surrogate pair, which UTF-8 can't.
    return HTMLResponse(html.encode("utf-8", "replace"), view.status)


def parts(view: View, call: Call) -> dict[str, str]:
    """Returns the parts of the page that may change, by name."""
    found: dict[str, str] = {}
    values = _values(view, call)
    for name in (view.template, *(("of_queue.html",) if "here" in view.values else ())):
        template = _environment.get_template(name)
        context = template.new_context(values)
        for block, draw in template.blocks.items():
            if block.startswith(LIVE):
                found.setdefault(block.removeprefix(LIVE), "".join(draw(context)))
    return {name: html.encode("utf-8", "replace").decode() for name, html in found.items()}


def _values(view: View, call: Call) -> dict[str, Any]:
    values = {
        "title": view.title,
        "call": call,
        "board": call.board,
        "caller": call.caller,
        "form_token": call.token,
        "statics": STATIC_VERSION,
        "said": "",
        "area": _AREAS.get(view.template, "queues"),
        "root": _up(call),
        **view.values,
    }
    return {**values, "m": _environment.get_template("macros.html").make_module(values)}


def _up(call: Call) -> str:
    """Returns the way from the page's folder to the dashboard's: a page that does not exist may be anywhere."""
    scope = call.request.scope
    return "../" * (scope["path"].removeprefix(scope.get("root_path", "")).count("/") - 1)


def _static() -> dict[str, tuple[bytes, str]]:
    folder = files("jobwire.dashboard") / "static"
    style = Template((folder / "dashboard.css").read_text(encoding="utf-8")).substitute(
        font=FONT, light=variables(NAMED), dark=variables(NAMED, DARK)
    )
    return {
        "dashboard.css": (style.encode(), "text/css"),
        "dashboard.js": ((folder / "dashboard.js").read_bytes(), "text/javascript"),
        "icon.svg": ((folder / "icon.svg").read_bytes(), "image/svg+xml"),
    }


STATIC = _static()
"""The files that pages use, by name, with their types."""
STATIC_VERSION = hashlib.sha256(b"".join(content for content, _ in STATIC.values())).hexdigest()[:12]
