"""CSV files are read as Python's `csv` reads them."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jobwire.errors import JobwireError
from jobwire.pipeline.load.csv_files import CORRUPT, TEXTS, read_csv

pytestmark = pytest.mark.xdist_group("spark-movers")

COLUMNS = ["file", "row", "a", "b"]
PIECES = ['"', '""', "\\", '\\"', ",", ";", "\n", "\r\n", "\r", " ", "\t", "'", "#", "0", "ż", "🙂", "\u2028", "\x85"]


@dataclass(frozen=True)
class File:
    """A CSV file in one of the forms that programs write."""

    rows: list[list[str]]
    line_end: str
    all_quoted: bool
    marked: bool
    ended: bool

    def text(self, number: int) -> str:
        buffer = io.StringIO(newline="")
        quoting = csv.QUOTE_ALL if self.all_quoted else csv.QUOTE_MINIMAL
        writer = csv.writer(buffer, lineterminator=self.line_end, quoting=quoting)
        writer.writerows([COLUMNS, *([str(number), str(row), *texts] for row, texts in enumerate(self.rows))])
        text = buffer.getvalue()
        return ("\ufeff" if self.marked else "") + (text if self.ended else text.removesuffix(self.line_end))


def values(pieces: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=6).map("".join)


def rows(all_quoted: bool) -> st.SearchStrategy[list[list[str]]]:
    # Before Python 3.13, `csv` does not quote a value because of a CR. The last column can't end with one.
    any_value = values(PIECES if all_quoted else [piece for piece in PIECES if "\r" not in piece])
    return st.lists(st.tuples(any_value, any_value.map(lambda text: text.rstrip("\r"))).map(list), max_size=3)


FILES = st.booleans().flatmap(
    lambda quoted: st.builds(
        File, rows(quoted), st.sampled_from(["\n", "\r\n"]), st.just(quoted), st.booleans(), st.booleans()
    )
)


def test_files_are_read_as_pythons_csv_reads_them(spark: Any, tmp_path: Path) -> None:
    expected: dict[tuple[str, str], tuple[str | None, ...]] = {}
    texts: list[str] = []

    @settings(
        max_examples=300, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(FILES)
    def make(file: File) -> None:
        text = file.text(len(texts))
        (tmp_path / f"{len(texts)}.csv").write_text(text, encoding="utf-8", newline="")
        texts.append(text)
        for number, row, *rest in list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))[1:]:
            expected[number, row] = tuple(value or None for value in rest)

    make()
    found = read_csv(spark, str(tmp_path), {}).collect()

    wrong = [(row, texts[int(row["file"])]) for row in found if expected[row["file"], row["row"]] != tuple(row[2:4])]
    assert (len(found), wrong, {row[CORRUPT] for row in found}) == (len(expected), [], {None})


def test_a_dialect_has_its_own_separator_quote_escape_and_encoding(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a|b\n'1|\\'2'|é\n", encoding="latin1")

    options = {"sep": "|", "quote": "'", "escape": "\\", "encoding": "ISO-8859-1"}

    assert read_csv(spark, str(path), options).collect() == [("1|'2", "é", None)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("to,plan\nann,free\n".encode("utf-16"), "the header is not text in its encoding"),
        ("größe,plan\n9,free\n".encode("latin1"), "the header is not text in its encoding"),
        (b"to,plan\rann,free\r", "CR alone ends its records"),
    ],
    ids=["UTF-16", "Latin-1", "CR"],
)
def test_a_file_whose_header_is_not_one_is_refused(spark: Any, tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)

    with pytest.raises(JobwireError, match=f"a\\.csv can't be read as csv: {reason}"):
        read_csv(spark, str(tmp_path / "a.csv"), {})


def test_an_option_that_spark_refuses_is_reported_with_the_file(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n", encoding="utf-8")

    with pytest.raises(JobwireError, match=r"a\.csv can't be read as csv: .*charset"):
        read_csv(spark, str(tmp_path / "a.csv"), {"encoding": "latin-one"})


def test_files_whose_headers_differ_are_refused_with_both(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("to,subject\nann,hi\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("subject,to\nbye,bob\n", encoding="utf-8")
    (tmp_path / "empty.csv").touch()

    with pytest.raises(JobwireError, match=r"a\.csv has to, subject, and .*b\.csv has subject, to"):
        read_csv(spark, str(tmp_path), {})

    (tmp_path / "b.csv").write_text("\ufeffTo,subject \r\nbob,bye\r\n", encoding="utf-8", newline="")
    found = read_csv(spark, str(tmp_path), {"multiLine": "false"}).collect()
    assert sorted((row[0], row[1]) for row in found) == [("ann", "hi"), ("bob", "bye")]


def test_types_are_inferred_and_lines_without_characters_skipped_whatever_the_line_ends(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("text,n\r\nx,5\r\n\r\ny,\r\n", encoding="utf-8", newline="")

    frame = read_csv(spark, str(tmp_path / "a.csv"), {}, infer=True)

    found = [row[:3] for row in frame.collect()]
    assert (frame.schema["n"].dataType.typeName(), found) == ("integer", [("x", 5, None), ("y", None, None)])
    assert [row[TEXTS][:2] for row in frame.collect()] == [("x", "5"), ("y", None)]
