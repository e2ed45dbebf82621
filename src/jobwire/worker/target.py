"""Finds the object that `module:object` or `./file.py:object` names."""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
import sys
from pathlib import Path
from typing import Any

from jobwire.errors import JobwireError


class BadTarget(JobwireError):
    """There is no such object, or it can't be worked with."""


class BrokenModule(JobwireError):
    """The module raised an error when it was imported. Its cause is that error, with a traceback that begins in the
    module."""


def load(target: str) -> Any:
    """Returns the object, imported from a file, from the current folder or from the installed packages.

    Raises BadTarget if it does not exist, BrokenModule if the module raises an error.
    """
    module, colon, path = target.rpartition(":")
    if not colon or not module or not path:
        example = f"{target}:handle" if target.endswith(".py") else "shop.mail:handle or ./mail.py:handle"
        raise BadTarget(f"write MODULE:OBJECT, such as {example} (got {target!r})")
    found: Any = _from_file(Path(module)) if module.endswith(".py") or os.sep in module else _from_path(module)
    for name in path.split("."):
        if not hasattr(found, name):
            raise BadTarget(f"{module} has no {path!r}{_near(name, _names(found))}")
        found = getattr(found, name)
    return found


def _from_file(file: Path) -> Any:
    """Imports a file, with its folder on the import path, as `python file.py` does.

    It is imported by its module name, so that the processes of executor="process" import it in the same way.
    """
    if not file.is_file():
        near = _near(file.name, (each.name for each in file.parent.glob("*.py"))) if file.parent.is_dir() else ""
        raise BadTarget(f"there is no file {str(file)!r}{near}")
    if file.suffix != ".py" or "." in file.stem:
        raise BadTarget(f"{file} can't be imported: its name must be of the form name.py")
    folder = str(file.resolve().parent)
    if folder not in sys.path[:1]:
        sys.path.insert(0, folder)
    module = _imported(file.stem)
    if module.__file__ is None or not os.path.samefile(module.__file__, file):
        raise BadTarget(
            f"{file} can't be imported, because another module is named {file.stem!r} "
            f"({module.__file__ or 'a part of Python'}); rename the file"
        )
    return module


def _from_path(name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if name.startswith("."):
        raise BadTarget(f"write the whole name of the module, without the leading dot (got {name!r})")
    try:
        return _imported(name)
    except ModuleNotFoundError as missing:
        raise BadTarget(
            f"there is no module {missing.name!r} here or among the installed ones{_near_module(missing.name or '')}"
        ) from None


def _imported(name: str) -> Any:
    """Imports a module. Raises ModuleNotFoundError if it does not exist, BrokenModule if it raises an error."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and (name == missing.name or name.startswith(f"{missing.name}.")):
            raise
        fault: Exception = missing
    except Exception as error:
        fault = error
    trace = fault.__traceback__
    while trace is not None and _is_machinery(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    raise BrokenModule(f"importing {name} raised {type(fault).__name__}: {fault}") from fault.with_traceback(trace)


def _is_machinery(file: str) -> bool:
    return file in (__file__, importlib.__file__) or file.startswith("<frozen importlib")


def _near_module(name: str) -> str:
    package, _, last = name.rpartition(".")
    folders: list[str] | None = None if package else sys.path
    if package:
        folders = list(getattr(sys.modules.get(package), "__path__", ()))
    return _near(last, (found.name for found in pkgutil.iter_modules(folders)), f"{package}." if package else "")


def _names(owner: Any) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]


def _near(name: str, known: Any, prefix: str = "") -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {prefix}{near[0]}?" if near else ""
