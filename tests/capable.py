"""Which protocols can do what, by their own word."""

from __future__ import annotations

import importlib
import pkgutil

from jobwire import backends
from jobwire.boundary import Capabilities, Feature


def all_capabilities() -> dict[str, Capabilities]:
    """The capabilities of every protocol that there is."""
    found: dict[str, Capabilities] = {}
    for module in pkgutil.iter_modules(backends.__path__):
        package = importlib.import_module(f"jobwire.backends.{module.name}")
        if hasattr(package, "open_backend"):
            found[module.name] = importlib.import_module(f"{package.__name__}.rules").CAPABILITIES
    return found


def protocols_with(feature: Feature) -> list[str]:
    """Names of the protocols that have the feature."""
    return [name for name, can in all_capabilities().items() if can.has(feature)]
