"""Links between pages. All are relative to the page's folder, so they hold wherever the dashboard is mounted.

Names of queues and ids of jobs may hold any character, also slashes. So they are parameters and never part of a path.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

OVERVIEW = "./"


def link(page: str, **parameters: str | int | None) -> str:
    """Returns the link to a page. Parameters that are None or empty are left out.

    >>> link("job", store="prod", queue="a/b", id="1&2", state=None)
    'job?store=prod&queue=a%2Fb&id=1%262'
    """
    given = {name: str(value) for name, value in parameters.items() if value not in (None, "")}
    return f"{page}?{urlencode(given, quote_via=quote, safe='', errors='replace')}" if given else page
