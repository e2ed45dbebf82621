"""CSV as RFC 4180 has it, read by Spark: quotes are doubled, backslashes are ordinary characters, and a quoted line
break belongs to its value. Spark's own defaults are others.

* Records end with LF or CRLF. Spark would take the first line break of a file as the one that ends all of its records,
  also one inside quotes, and would turn quoted CRLF into LF. It is asked for LF instead, and what is left of a CRLF is
  removed from the last column. So a value of the last column that ends with a CR of its own loses it.
* A field without any character is null, quoted or not. Lines without any character are skipped.
* A record that does not fit the header has its text in the column CORRUPT. Spark would cut or fill it silently. So has
  one with bytes that are not UTF-8, unless the encoding is given: Spark would put U+FFFD in their place.
* Files that are read together must have one header: see csv_headers.py.
* A file is read by one task, as only its beginning shows which line breaks are quoted. `multiLine=false` divides large
  files, if no value has a line break.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from jobwire.errors import JobwireError
from jobwire.pipeline.load.csv_headers import check_headers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CORRUPT = "_corrupt_record"
TEXTS = "_texts"
"""The column with a record's texts, if types are inferred: types may change when the file grows, texts don't."""
UNDECODED = "\ufffd"
"""Stands where the bytes of a file are not text in its encoding."""
_LEFT_OF_CRLF = "\r"


def dialect_options(source: str, given: Mapping[str, str]) -> dict[str, str]:
    """Returns Spark's options for a file: those given, else those of RFC 4180.

    >>> dialect_options("a.tsv", {"quote": "'"})
    {'header': 'true', 'multiLine': 'true', 'sep': '\\t', 'quote': "'", 'escape': "'"}
    """
    known = {name.lower() for name in given}
    options = {"header": "true", "multiLine": "true"}
    if source.lower().rstrip("/").endswith(".tsv"):
        options["sep"] = "\t"
    if known & {"sep", "delimiter"}:
        options.pop("sep", None)
    options = {name: value for name, value in options.items() if name.lower() not in known} | dict(given)
    quote = next((value for name, value in given.items() if name.lower() == "quote"), '"')
    options.setdefault("quote", quote)
    if "escape" not in known:
        options["escape"] = quote
    return options


def read_csv(spark: SparkSession, path: str, given: Mapping[str, str], *, infer: bool = False) -> DataFrame:
    """Returns the records of the files, as texts, or with inferred types and a column TEXTS. Raises JobwireError if two
    files have different headers."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415 an extra

    options = dialect_options(path, given)
    ends_with_cr = not any(name.lower() == "linesep" for name in options)
    if ends_with_cr:
        options["lineSep"] = "\n"
    header = read_files(spark, "csv", path, options).schema.names
    schema = StructType([StructField(name, StringType()) for name in (*header, CORRUPT)])
    frame = _reader(spark, "csv", {**options, "columnNameOfCorruptRecord": CORRUPT}).schema(schema).load(path)
    if not header:
        return frame
    if _has_header(options) and len(frame.inputFiles()) > 1:
        check_headers(lambda given, ddl: _reader(spark, "csv", given).schema(ddl).load(path), options, len(header))
    names = [*header[:-1], header[-1].removesuffix(_LEFT_OF_CRLF)]
    values = [quoted(name) for name in header]
    if ends_with_cr:
        values[-1] = F.nullif(F.regexp_replace(values[-1], "\r\\z", ""), F.lit(""))
    _check_header(path, names)
    record = F.col(CORRUPT)
    if not any(name.lower() in ("encoding", "charset") for name in options):
        text = F.concat_ws(",", *values)
        record = F.when(text.contains(UNDECODED), F.coalesce(CORRUPT, text)).otherwise(record)
    texts = F.struct(*(value.alias(name) for value, name in zip(values, names, strict=True)), CORRUPT)
    if infer:
        types = read_files(spark, "csv", path, {**_without_line_ends(options), "inferSchema": "true"}).schema
        values = [value.try_cast(field.dataType) for value, field in zip(values, types.fields, strict=True)]
    columns = [value.alias(name) for value, name in zip(values, names, strict=True)]
    rows = frame.select(*columns, record.alias(CORRUPT), *([texts.alias(TEXTS)] if infer else []))
    # In a file with CRLF, a line without any character is one with a CR, of which Spark reports nothing.
    blank = (
        F.col(CORRUPT).isin("", _LEFT_OF_CRLF)
        if len(names) > 1
        else quoted(names[0]).isNull() & F.col(CORRUPT).isNull()
    )
    return rows.where(~F.coalesce(blank, F.lit(False)))


def _check_header(path: str, names: Sequence[str]) -> None:
    """Raises JobwireError if the header shows that the file is in another encoding, or that only CR ends its records.

    >>> _check_header("a.csv", ["to", "from\\rann", "bob"])
    Traceback (most recent call last):
    jobwire.errors.JobwireError: a.csv can't be read as csv: CR alone ends its records, which must end with LF or CRLF
    """
    header = ",".join(names)
    if UNDECODED in header or "\0" in header:
        advice = "the header is not text in its encoding; give another one, such as encoding=UTF-16"
        raise JobwireError(f"{path} can't be read as csv: {advice}")
    if re.search("\r(?!\n)", header):
        raise JobwireError(f"{path} can't be read as csv: CR alone ends its records, which must end with LF or CRLF")


def read_files(spark: SparkSession, kind: str, path: str, options: Mapping[str, str]) -> DataFrame:
    """Returns the rows of files of one of Spark's formats. Raises JobwireError if they can't be read."""
    from pyspark.errors import AnalysisException, IllegalArgumentException  # noqa: PLC0415 an extra

    try:
        frame = _reader(spark, kind, options).load(path)
        _ = frame.schema  # Spark Connect looks for the files only now
        return frame
    except (AnalysisException, IllegalArgumentException) as error:
        raise JobwireError(f"{path} can't be read as {kind}: {str(error).splitlines()[0]}") from error


def _reader(spark: SparkSession, kind: str, options: Mapping[str, str]) -> Any:
    return spark.read.format(kind).options(**cast("dict[str, Any]", dict(options)))


def _has_header(options: Mapping[str, str]) -> bool:
    return any(name.lower() == "header" and value.lower() == "true" for name, value in options.items())


def _without_line_ends(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options by which Spark finds the line ends itself: else numbers with a CR would be texts."""
    return {name: value for name, value in options.items() if value != "\n" or name != "lineSep"}


def quoted(name: str) -> Column:
    """Returns a column by its name, whatever characters that has."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    return F.col("`" + name.replace("`", "``") + "`")
