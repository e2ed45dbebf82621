"""The answers of scripts that change single jobs, the same in both Redis protocols."""

from __future__ import annotations

from jobwire.boundary import Acted

ACTED = {1: Acted.DONE, 0: Acted.NOT_FOUND, -1: Acted.WRONG_STATE, -2: Acted.LOCKED}
"""Results by the numbers that the scripts return."""
