"""PostgreSQL's JSON texts made compact, a batch at a time."""

import pyarrow as pa
import pytest

from jobwire.pipeline.stores.pgboss.json_text import compact

DEEP = '[{"a": ' * 600 + "null" + "}]" * 600


def test_a_batch_is_made_compact_text_by_text_and_null_stays_null():
    texts = ['{"a": 1, "b": [2, 3]}', None, '"one: two, three"', "null", '{"é": "\\u0001, \\": "}', "{}", None]
    assert compact(pa.array(texts)).to_pylist() == [
        *('{"a":1,"b":[2,3]}', None, '"one: two, three"', "null", '{"é":"\\u0001, \\": "}', "{}", None),
    ]


@pytest.mark.parametrize(
    ("spaced", "tight"),
    [
        ('{"n": 1.50, "m": 2}', '{"n":1.5,"m":2}'),
        ('{"n": 12345678901234567890123, "m": 1}', '{"n":12345678901234567890123,"m":1}'),
        ('["2026-11-15T10:00:00.5", 1]', '["2026-11-15T10:00:00.5",1]'),
        (DEEP, DEEP),
    ],
    ids=["a fraction", "digits beyond a double's", "a time", "deeper than any parser goes"],
)
def test_one_that_needs_care_changes_nothing_for_its_neighbours(spaced, tight):
    made = compact(pa.array(['{"a": 1}', spaced, None, '{"b": 2}'])).to_pylist()
    assert made == ['{"a":1}', tight, None, '{"b":2}']


def test_of_a_slice_only_its_own_texts_are_read():
    texts = pa.array(['{"a": 1}', '{"b":2}', '{"c":3}', None])
    assert compact(texts.slice(1)).to_pylist() == ['{"b":2}', '{"c":3}', None]
    assert compact(texts.slice(0, 1)).to_pylist() == ['{"a":1}']
    assert compact(texts.slice(0, 0)).to_pylist() == []


def test_texts_that_are_compact_are_given_back():
    texts = pa.array(['{"a":1}', '"a b"', None, "1.0"])
    assert compact(texts) is texts
