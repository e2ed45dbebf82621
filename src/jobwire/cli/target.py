"""Finding the object that `module:object` on a command line names."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import typer


def load(target: str) -> Any:
    """The object, imported from the current folder or from what is installed.

    An error inside the module keeps its traceback: it is the module author's to see.
    """
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise typer.BadParameter(f"write MODULE:OBJECT, such as shop.mail:handle (got {target!r})")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not (module_name == missing.name or module_name.startswith(f"{missing.name}.")):
            raise
        raise typer.BadParameter(f"there is no module {missing.name!r} here or among the installed ones") from None
    for name in path.split("."):
        if not hasattr(found, name):
            raise typer.BadParameter(f"module {module_name!r} has no {path!r}")
        found = getattr(found, name)
    return found
