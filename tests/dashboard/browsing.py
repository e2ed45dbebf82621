"""A client that behaves like a browser without JavaScript: it keeps cookies, follows links and sends forms."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx

ORIGIN = "http://dashboard.test"


@dataclass
class Form:
    """A form of a page: where it goes, its fields, and its buttons with a name."""

    action: str
    method: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class Page(HTMLParser):
    """A page as a browser reads it."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.status = response.status_code
        self.headers = response.headers
        self.url = response.url
        self.html = response.text
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.forms: list[Form] = []
        self.links: dict[str, str] = {}
        self._by_id: dict[str, Form] = {}
        self._form: Form | None = None
        self._texts: list[str] = []
        self._link: str | None = None
        self.feed(response.text)
        self.text = " ".join(" ".join(self._texts).split())

    @property
    def title(self) -> str:
        return html.unescape(self.html.partition("<title>")[2].partition("</title>")[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag == "form":
            self._form = Form(given.get("action") or "", given.get("method") or "get")
            self.forms.append(self._form)
            self._by_id[given.get("id") or ""] = self._form
        elif tag == "a":
            self._link = given.get("href")
        form = self._by_id.get(given["form"] or "") if "form" in given else self._form
        if tag == "input" and form and given.get("name") and given.get("type") != "checkbox":
            form.fields.append((given["name"] or "", given.get("value") or ""))
        if tag == "button" and form and given.get("name"):
            form.buttons.append((given["name"] or "", given.get("value") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "a":
            self._link = None

    def handle_data(self, data: str) -> None:
        self._texts.append(data)
        if self._link is not None and data.strip():
            self.links.setdefault(data.strip(), self._link)

    def form(self, action: str, button: str | None = None) -> Form:
        """The first form that goes there, and has the button if one is named."""
        for one in self.forms:
            if one.action == action and (button is None or button in dict(one.buttons).values() or _has(one, button)):
                return one
        raise AssertionError(f"no form {action} {button} among {self.forms}")

    def has_form(self, action: str) -> bool:
        return any(one.action == action for one in self.forms)


def _has(form: Form, button: str) -> bool:
    return any(value == button for _, value in form.buttons)


class Browser:
    """Opens pages of a dashboard and sends their forms."""

    def __init__(self, app: Any, headers: dict[str, str], base: str = "/") -> None:
        self.app = app
        self.base = base
        transport = httpx.ASGITransport(app)
        self.client = httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers, follow_redirects=True)

    async def close(self) -> None:
        await self.client.aclose()

    async def open(self, page: str = "", queue: str | None = "letters", **parameters: Any) -> Page:
        where = {"store": "shop", "queue": queue} if page and queue is not None else {}
        return Page(await self.client.get(f"{self.base}{page}", params={**where, **parameters}))

    async def send(self, page: Page, form: Form, button: str | None = None, **fields: Any) -> Page:
        """Sends the form as a browser does: with its hidden fields, the pressed button, and the origin of the page."""
        pressed = [one for one in form.buttons if one[1] == button]
        more = [
            (name, one) for name, value in fields.items() for one in (value if isinstance(value, list) else [value])
        ]
        kept = [one for one in form.fields if one[0] not in fields]
        return await self.post(str(page.url.join(form.action)), [*kept, *pressed, *more])

    async def post(self, url: str, fields: list[tuple[str, str]], **headers: str) -> Page:
        given = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        body = str(httpx.QueryParams(fields))
        return Page(await self.client.post(url, content=body, headers=given))
