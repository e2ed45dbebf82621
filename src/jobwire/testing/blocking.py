"""`app.testing()` of `jobwire.sync.App`."""

from __future__ import annotations

from jobwire.blocking import blocking_class
from jobwire.testing import app


class Testing(blocking_class(app.Testing, ("clock",))):  # type: ignore[misc]
    """An app under test, for blocking code: `with app.testing() as t:`."""

    __test__ = False
