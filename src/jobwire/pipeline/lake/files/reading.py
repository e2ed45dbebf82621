"""Lets Arrow read Parquet files from a storage that is not one of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pyarrow import fs


class ReadOnly(fs.FileSystemHandler):  # pyright: ignore[reportUntypedBaseClass] Arrow has no types
    """Files that Arrow asks for by their paths. It neither lists nor writes any."""

    def __init__(self, root: str, opened: Callable[[str], Any]) -> None:
        self._root, self._opened = root, opened

    def open_input_file(self, path: str) -> Any:
        return self._opened(path)

    open_input_stream = open_input_file

    def get_type_name(self) -> str:
        return f"jobwire+{self._root}"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        return [fs.FileInfo(path, fs.FileType.File) for path in paths]

    def get_file_info_selector(self, selector: Any) -> NoReturn:
        raise NotImplementedError(f"{self._root} is not listed by Arrow")

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{self._root} is not written by Arrow")

    open_output_stream = open_append_stream = create_dir = copy_file = move = _refuse
    delete_file = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
