"""Faults, one file each: `kill_worker.py` has the class KillWorker and is named `kill_worker` on the command line."""

from __future__ import annotations

import importlib
import pkgutil

from faults.inject.fault import Fault

__all__ = ["FAULTS", "Fault"]


def _found() -> dict[str, type[Fault]]:
    found: dict[str, type[Fault]] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name != "fault":
            loaded = importlib.import_module(f"{__name__}.{module.name}")
            found[module.name] = getattr(loaded, "".join(word.capitalize() for word in module.name.split("_")))
    return found


FAULTS = _found()
