"""The rule for versions of side data, without a store."""

from __future__ import annotations

import doctest
import pickle

import pytest

from jobwire import NewerSideData, StoreRefused
from jobwire.backends import side_version
from jobwire.backends.side_version import checked


@pytest.mark.parametrize(("stored", "version"), [(1, 1), (b"2", 2), (2.0, 2)])
def test_a_version_is_read_in_the_form_in_which_a_store_has_it(stored, version):
    assert checked("here", stored, newest=2) == version


@pytest.mark.parametrize("stored", [0, -1, b"one", b"", "", True, 1.5, float("nan"), float("inf"), [1]])
def test_what_is_not_a_version_is_refused_and_not_taken_for_one(stored):
    with pytest.raises(StoreRefused, match=r"here has side data of version .* which is not a version") as refusal:
        checked("here", stored, newest=2)
    assert not isinstance(refusal.value, NewerSideData)


def test_a_newer_version_is_refused_with_the_place_both_versions_and_what_to_do():
    with pytest.raises(NewerSideData) as refusal:
        checked("schema mail_jobwire", 3, newest=2)
    assert str(refusal.value) == (
        "schema mail_jobwire has side data of version 3; this jobwire supports up to 2: upgrade jobwire here"
    )
    again = pickle.loads(pickle.dumps(refusal.value))
    assert (str(again), again.place, again.found, again.known) == (str(refusal.value), "schema mail_jobwire", 3, 2)


def test_the_examples_in_the_docstrings_run():
    assert doctest.testmod(side_version).failed == 0
