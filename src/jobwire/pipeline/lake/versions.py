"""Removes the folders of a table that no reader can need any more."""

from __future__ import annotations

from jobwire.pipeline.lake import run_log
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import Pointer

VERSION = "v-"


def folder_of_run(run: str) -> str:
    """Returns the name of the folder in which a run writes its part of a table."""
    return f"{VERSION}{run}"


def remove_replaced(files: LakeFiles, pointer: Pointer, before: Pointer | None) -> None:
    """Removes what the publication before the last one has replaced, and versions that no pointer names: what crashes
    left. What a run that is under way has staged is left alone.

    Lists the versions of the table with one request, and none of the parts: a publication does not cost more in a lake
    with more days. What a crash leaves between the two, `sweep` removes.
    """
    wanted = {*pointer.folders, *pointer.previous}
    for folder in () if before is None else before.previous:
        if folder not in wanted:
            files.remove(f"{pointer.table}/{folder}")
    _remove_unnamed(files, pointer, wanted)


def sweep(files: LakeFiles, pointer: Pointer) -> int:
    """Removes every folder of the table that neither the pointer names nor its publication has replaced. Returns how
    many there were."""
    wanted = {*pointer.folders, *pointer.previous}
    removed = _remove_unnamed(files, pointer, wanted)
    for version in sorted({folder.partition("/")[0] for folder in wanted if "/" in folder}):
        for part in files.folders(f"{pointer.table}/{version}"):
            if f"{version}/{part}" not in wanted:
                files.remove(f"{pointer.table}/{version}/{part}")
                removed += 1
    return removed


def _remove_unnamed(files: LakeFiles, pointer: Pointer, wanted: set[str]) -> int:
    versions = {folder.partition("/")[0] for folder in wanted}
    unnamed = [
        version
        for version in files.folders(pointer.table)
        if version.startswith(VERSION)
        and version not in versions
        and not run_log.is_running(files, version.removeprefix(VERSION))
    ]
    for version in unnamed:
        files.remove(f"{pointer.table}/{version}")
    return len(unnamed)
