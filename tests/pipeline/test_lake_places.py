"""A lake is where its files are: copied, moved, in an object store, or on a file system that only Spark reaches."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from jobwire import NewJob
from jobwire.dashboard.history import History
from jobwire.errors import InvalidOption, JobwireError, MissingExtra
from jobwire.pipeline.history.build import build
from jobwire.pipeline.history.ingest import Source, ingest
from jobwire.pipeline.lake import run_log
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.files.hadoop import HadoopStorage, lease_of
from jobwire.pipeline.lake.files.lease import Lease
from jobwire.pipeline.lake.files.local import LocalStorage
from jobwire.pipeline.lake.files.objects import ObjectStorage
from jobwire.pipeline.lake.lake import BY_DAY, SUMMARIES, Lake
from jobwire.pipeline.lake.pointers import Part, Pointer, load_versioned, read_pointer, read_table, save
from jobwire.pipeline.lake.publication import Staged, next_pointer
from jobwire.pipeline.lake.tables import columns_of
from jobwire.pipeline.lake.versions import remove_replaced
from jobwire.pipeline.report.from_lake import report
from jobwire.pipeline.stores.address import store_name
from jobwire.sync import Queue
from pipeline.s3_server import s3_server

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
TABLES = [*BY_DAY, *SUMMARIES]
_HADOOP = "org.apache.hadoop.fs"


@dataclass(frozen=True)
class Original:
    """A lake that was ingested and built, with the store that it was read from."""

    root: Path
    url: str

    @property
    def source(self) -> Source:
        return Source(self.url, store_name(self.url))


def add(url: str, count: int) -> None:
    with Queue("mail", url) as queue:
        queue.add_many([NewJob({"n": number}) for number in range(count)])


def use(spark: Any, root: str, source: Source) -> int:
    """Ingests, builds and reports. Returns the number of jobs that the lake then knows."""
    lake = Lake(root)
    result = ingest(spark, lake, [source])
    assert result.good, result
    build(spark, lake)
    return read_table(root, "silver/jobs").num_rows


@pytest.fixture(scope="module")
def original(spark: Any, shared_place: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Original:
    made = Original(tmp_path_factory.mktemp("original") / "lake", shared_place("bullmq"))
    add(made.url, 10)
    assert use(spark, str(made.root), made.source) == 10
    return made


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with s3_server(tmp_path_factory.mktemp("s3")) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def mounted(spark: Any, tmp_path: Path) -> Iterator[Callable[[Path], str]]:
    """`mounted(folder)`: the folder as Hadoop has it, under a scheme that this process does not know itself."""
    settings: list[str] = []

    def mount(folder: Path) -> str:
        name = f"t{uuid.uuid4().hex[:8]}"
        settings.append(f"fs.viewfs.mounttable.{name}.link./data")
        spark.conf.set(settings[-1], f"file://{folder}")
        return f"viewfs://{name}/data"

    yield mount
    for setting in settings:
        spark.conf.unset(setting)


@pytest.fixture(params=["file", "s3"])
def atomic_root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The root of an empty lake, in the two kinds of storage that decide between writers. Of Hadoop's file systems the
    servers do so, and its local one has none."""
    return _root(request, tmp_path)


@pytest.fixture(params=["file", "s3", "viewfs", "s3 through Spark"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The root of an empty lake, in each of the three kinds of storage, and with the scheme of an object store that
    Spark alone reaches. Hadoop has the files of the last one on a disk."""
    return _root(request, tmp_path)


def _root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"file://{tmp_path}/lake"
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3a://lakes/{uuid.uuid4().hex}"
    (tmp_path / "mounted").mkdir()
    mounted = f"{request.getfixturevalue('mounted')(tmp_path / 'mounted')}/lake"
    if request.param == "viewfs":
        return mounted
    request.getfixturevalue("monkeypatch").setenv("JOBWIRE_LAKE_FILES", "spark")
    settings = request.getfixturevalue("spark").conf
    settings.set("fs.s3a.impl", f"{_HADOOP}.viewfs.ViewFileSystemOverloadScheme")
    request.addfinalizer(lambda: settings.unset("fs.s3a.impl"))
    return mounted.replace("viewfs://", "s3a://")


def upload(folder: Path, root: str) -> None:
    storage = ObjectStorage(root)
    for path in folder.rglob("*"):
        if path.is_file():
            storage.write(str(path.relative_to(folder)), path.read_bytes())


def assert_equal_tables(root: str, other: str) -> None:
    for name in TABLES:
        keys = [
            (key, "ascending")
            for key in read_table(other, name).schema.names
            if key not in ("wait_sketch", "run_sketch")
        ]
        assert read_table(root, name).sort_by(keys).equals(read_table(other, name).sort_by(keys)), name


def test_a_copy_of_a_lake_lives_on_without_ever_reading_the_original(
    spark: Any, original: Original, tmp_path: Path
) -> None:
    first, copy, moved = tmp_path / "first", tmp_path / "copy", tmp_path / "moved"
    shutil.copytree(original.root, first)
    shutil.copytree(first, copy)
    named = [path for path in copy.rglob("*") if path.is_file() and bytes(original.root) in path.read_bytes()]
    assert named == []
    for path in [path for path in first.rglob("*") if path.is_file()]:
        path.write_bytes(b"whoever reads this fails")

    add(original.url, 5)
    jobs = use(spark, str(copy), original.source)
    copy.rename(moved)
    shutil.rmtree(first)
    again = build(spark, Lake(str(moved)), since=None, until=None)

    assert jobs == read_table(str(moved), "silver/jobs").num_rows == again.rows["silver/jobs"]
    assert jobs == Lake(str(moved)).snapshots(spark).select("id").distinct().count() >= 15
    assert Lake(str(moved)).bronze_events(spark).count() == read_table(str(moved), "silver/events").num_rows
    assert report(Lake(str(moved)), tmp_path / "report").rows["throughput_hourly"] >= 1


def test_a_lake_that_only_spark_reaches_is_ingested_published_and_reported(
    spark: Any, original: Original, tmp_path: Path, mounted: Callable[[Path], str]
) -> None:
    shutil.copytree(original.root, tmp_path / "disk" / "lake")
    root = f"{mounted(tmp_path / 'disk')}/lake"
    lake, before = Lake(root), Lake(root).bronze_events(spark).count()

    add(original.url, 3)
    result = ingest(spark, lake, [original.source])
    lake.publish(lake.stage("gold/retries", lake.table(spark, "gold/retries"), "again"))

    assert result.good, result
    assert lake.bronze_events(spark).count() == before + result.sources[0].events > before
    assert_equal_tables(root, str(tmp_path / "disk" / "lake"))
    assert (lake.files.folders("gold/retries")[-1], read_pointer(root, "gold/retries").run) == ("v-again", "again")
    assert report(lake, tmp_path / "report").rows["throughput_hourly"] >= 1
    assert run_log.read_runs(root)[-1]["outcome"] == "ok"


def test_a_lake_copied_into_an_object_store_is_read_and_reported_there(
    s3: None, original: Original, tmp_path: Path
) -> None:
    root = f"s3a://lakes/{uuid.uuid4().hex}"
    upload(original.root, root)

    assert_equal_tables(root, str(original.root))
    assert read_pointer(root, "silver/jobs").files[0].startswith("s3://lakes/")
    assert run_log.read_runs(root) == run_log.read_runs(str(original.root))
    here, there = (report(Lake(str(one)), tmp_path / name) for one, name in ((original.root, "a"), (root, "b")))
    assert here.rows == there.rows
    period = asyncio.run(History(root).period(7))
    assert period is not None


def test_of_several_publications_at_once_one_succeeds(atomic_root: str) -> None:
    def publish(turn: int, number: int) -> bool:
        files = LakeFiles(atomic_root)
        _, version = load_versioned(files, "gold/retries")
        together.wait(60)
        return save(files, Pointer("gold/retries", "parquet", "name string", f"r{number}", "", turn, {}), version)

    for turn in range(2):  # onto nothing, and onto a pointer
        together = threading.Barrier(4)
        with ThreadPoolExecutor(4) as threads:
            published = [*threads.map(publish, [turn] * 4, range(4))]
        assert sorted(published) == [False, False, False, True]
        assert read_pointer(atomic_root, "gold/retries").run == f"r{published.index(True)}"


def test_a_publication_onto_an_older_pointer_is_refused_everywhere(root: str) -> None:
    files, pointer = LakeFiles(root), Pointer("gold/retries", "parquet", "name string", "r1", "", 1, {})

    assert save(files, pointer, None)
    _, first = load_versioned(files, "gold/retries")
    assert not save(files, replace(pointer, run="r0"), None)
    assert save(files, replace(pointer, run="r2"), first)
    assert not save(files, replace(pointer, run="r3"), first)
    assert read_pointer(root, "gold/retries").run == "r2"
    assert [name for name in files.folders("") if name not in ("gold", "locks")] == []


def test_small_files_and_folders_are_the_same_everywhere(root: str) -> None:
    files = LakeFiles(root)

    files.write("gold/x/_current.json", {"a": 1})
    files.write("gold/x/_current.json", {"a": "größe"})

    assert files.read("gold/x/_current.json") == {"a": "größe"}
    assert files.read("gold/y/_current.json") is None
    assert (files.folders("gold"), files.files("gold/x"), files.folders("none")) == (["x"], ["_current.json"], [])
    assert (files.files("none"), files.parquet("none"), files.bytes("none")) == ([], [], 0)
    assert files.bytes("gold") > 0
    files.remove("gold/x")
    files.remove("gold/x")
    assert files.folders("gold") == []


def test_one_build_at_a_time_everywhere(root: str) -> None:
    with LakeFiles(root).locked("build"):
        with (
            pytest.raises(JobwireError, match=r"another build is under way in the lake at .* \(process \d+"),
            LakeFiles(root).locked("build"),
        ):
            pass
        with LakeFiles(root).locked("ingest"):
            pass
    with LakeFiles(root).locked("build"):
        pass


def test_a_lease_whose_holder_died_is_taken_over_and_a_slow_holder_leaves_it_alone(s3: None) -> None:
    files, storage = LakeFiles(place := f"s3://lakes/{uuid.uuid4().hex}"), ObjectStorage(place)
    slow = Lease(storage, "build")
    with slow:
        files.write("locks/build.json", {**files.read("locks/build.json"), "until": "2026-01-01T00:00:00+00:00"})
        with Lease(storage, "build"):
            taken = files.read("locks/build.json")
            slow.__exit__()
            assert files.read("locks/build.json") == taken
            with pytest.raises(JobwireError, match="another build is under way"), Lease(storage, "build"):
                pass


def test_of_two_that_end_the_same_old_lease_of_hadoop_the_second_leaves_the_new_one_alone(
    mounted: Callable[[Path], str], tmp_path: Path
) -> None:
    (tmp_path / "mounted").mkdir()
    storage = HadoopStorage(mounted(tmp_path / "mounted"))
    name = lease_of("gold/pointer.json")
    file = tmp_path / "mounted" / name
    storage._put(storage._path(name), b"of a writer that died", overwrite=False)
    os.utime(file, (1, 1))
    rename = storage._rename

    def second(*given: Any) -> None:
        """Another waiter ends the lease and takes it, after this one has found it old."""
        rename(*given)
        storage._put(storage._path(name), b"of the first", overwrite=False)
        rename(*given)

    storage._rename = second  # type: ignore[method-assign]
    storage._end_if_old(name)

    assert file.read_bytes() == b"of the first"


def test_a_holder_of_hadoops_lease_that_was_paused_for_too_long_replaces_nothing_and_leaves_the_next_one_alone(
    mounted: Callable[[Path], str], tmp_path: Path
) -> None:
    (tmp_path / "mounted").mkdir()
    storage = HadoopStorage(mounted(tmp_path / "mounted"))
    lease, read = storage._path(lease_of("a.json")), storage.read

    def paused(path: str) -> Any:
        if path == "a.json":
            storage._put(lease, b"of the next one")
        return read(path)

    storage.read = paused  # type: ignore[method-assign]
    assert not storage.replace("a.json", b"{}", None)
    found = read(lease_of("a.json"))
    assert (read("a.json"), found and found.data) == (None, b"of the next one")


def test_a_run_of_another_container_with_the_same_hostname_is_not_taken_for_dead(tmp_path: Path) -> None:
    files = LakeFiles(str(tmp_path))
    with run_log.recorded(files, "build") as running:
        path = f"runs/{running.id}.json"
        content = files.read(path)
        files.write(path, {**content, "process": 2**22 + 1})  # no kernel gives this number
        assert not run_log.is_running(files, running.id)
        files.write(path, {**content, "process": 2**22 + 1, "processes": "another boot pid:[1]"})
        assert run_log.is_running(files, running.id)
        files.write(path, {**content, "processes": "another boot pid:[1]", "started_at": "2026-01-01T00:00:00+00:00"})
        assert not run_log.is_running(files, running.id)


def test_what_a_run_under_way_has_staged_is_not_tidied(root: str) -> None:
    files = LakeFiles(root)
    pointer = Pointer("gold/retries", "parquet", "name string", "r1", "", 1, {"all": Part("v-r1", 0, 0)}, ["v-r0"])
    with run_log.recorded(files, "build") as running:
        for version in ("r0", "r1", "crashed", running.id, f"{running.id}-7"):
            files.write(f"gold/retries/v-{version}/part.json", {})

        remove_replaced(files, pointer, None)

        assert files.folders("gold/retries") == sorted(["v-r0", "v-r1", f"v-{running.id}", f"v-{running.id}-7"])
    remove_replaced(files, pointer, None)
    assert files.folders("gold/retries") == ["v-r0", "v-r1"]


def requests_of_a_publication(root: Path, days: int) -> Counter[str]:
    """The requests of the second publication of a new last day, in a table of so many days."""
    files, counted = LakeFiles(str(root)), Counter[str]()

    class Counting(LocalStorage):
        def __getattribute__(self, name: str) -> Any:
            if name in ("read", "write", "names", "walk", "remove"):
                counted[name] += 1
            return super().__getattribute__(name)

    parts = {f"{number:04}": Part(f"v-{number:024}/part={number:04}", 9, 9, number + 1) for number in range(days)}
    for part in parts.values():
        files.write(f"silver/jobs/{part.folder}/rows.json", {})
    staged = Staged("silver/jobs", columns_of("silver/jobs"), "r", {}, None)
    files._storage = Counting(str(root))
    for turn in range(3):
        new = replace(staged, parts={f"{days - 1:04}": Part(f"v-{turn}/part={days - 1:04}", 9, 9)} if turn else parts)
        for part in new.parts.values():
            files.write(f"silver/jobs/{part.folder}/rows.json", {})
        counted.clear()
        before, version = load_versioned(files, "silver/jobs")
        pointer = next_pointer(new, before, new.parts, str(root), "parquet")
        assert save(files, pointer, version)
        remove_replaced(files, pointer, before)
    assert len(files.folders("silver/jobs")) == days + 1  # the last day, and the one that it has replaced
    return counted


def test_a_publication_makes_as_many_requests_in_a_lake_of_300_days_as_in_one_of_two(tmp_path: Path) -> None:
    assert requests_of_a_publication(tmp_path / "two", 2) == requests_of_a_publication(tmp_path / "many", 300)


def test_a_lake_that_is_not_whole_is_not_read_as_if_it_were(original: Original, tmp_path: Path) -> None:
    shutil.copytree(original.root, tmp_path / "copy")
    shutil.rmtree(next((tmp_path / "copy" / "silver" / "jobs").glob("v-*")))

    with pytest.raises(JobwireError, match=r"silver/jobs in the lake at .* lacks 1 of its folders, such as v-"):
        read_table(str(tmp_path / "copy"), "silver/jobs")


def test_a_lake_whose_credentials_are_wrong_is_an_error_of_ours(s3: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")

    with pytest.raises(JobwireError, match="the lake at s3://lakes/x can't be reached: "):
        Lake("s3://lakes/x")


def test_who_reads_the_files_is_spark_or_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBWIRE_LAKE_FILES", "hadoop")

    with pytest.raises(InvalidOption, match="JOBWIRE_LAKE_FILES: must be spark, or not set"):
        LakeFiles("s3://lakes/x")


def test_a_missing_client_of_object_stores_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)

    with pytest.raises(MissingExtra, match=r"s3://lakes/x needs more packages: pip install 'jobwire\[lake\]'"):
        LakeFiles("s3://lakes/x")
