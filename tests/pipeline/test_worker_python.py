"""The Python of Spark's processes."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jobwire.pipeline.spark.worker_python import worker_python

SPARK = Path(pyspark.__file__).parent


def test_only_what_belongs_to_spark_leaves_the_path(tmp_path: Path) -> None:
    mine = f"{tmp_path}/a folder:{tmp_path}/b.zip"
    path = f"{SPARK}/python/lib/pyspark.zip:{mine}:{SPARK}/jars/spark-core.jar"
    said = subprocess.run(
        [worker_python(), "-c", "import os, sys; print(os.environ['PYTHONPATH'], sys.prefix, *sys.argv[1:])", "a  b"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{mine} {sys.prefix} a  b\n"


def test_a_pyspark_that_python_would_not_find_by_itself_is_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "getsitepackages", list)
    monkeypatch.setattr(site, "getusersitepackages", lambda: "/nowhere")
    assert worker_python() == sys.executable


@pytest.mark.xdist_group("spark")
def test_the_processes_of_a_local_spark_import_the_installed_pyspark(spark: Any) -> None:
    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(pyspark.__file__)]

        def read(self, partition: InputPartition) -> Iterator[tuple[str, str]]:
            yield partition.value, pyspark.__file__

    class Files(DataSource):
        def schema(self) -> str:
            return "planning string, reading string"

        def reader(self, schema: StructType) -> Reader:
            return Reader()

    spark.dataSource.register(Files)
    [row] = spark.read.format("Files").load().collect()
    assert (row["planning"], row["reading"]) == (pyspark.__file__, pyspark.__file__)
