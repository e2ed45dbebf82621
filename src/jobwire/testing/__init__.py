"""Support for the tests of jobwire's users. docs/testing.md shows each part.

    async with app.testing() as t:
        await sign_up("a@example.com")
        assert_added(send_welcome, to="a@example.com")
        await t.run()

| name | is |
|---|---|
| `perform`, `perform_sync` | runs one task here, without a store |
| `App.testing`, which returns a `Testing` | replaces an app's store for a block |
| `assert_added` | checks which jobs were added in such a block |
| `Clock` | the time of such a block, which can be moved on |

The fixtures for pytest are in `jobwire_pytest`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobwire.testing.added import assert_added
    from jobwire.testing.app import Testing
    from jobwire.testing.clock import Clock
    from jobwire.testing.performing import perform, perform_sync

__all__ = ["Clock", "Testing", "assert_added", "perform", "perform_sync"]

_MODULES = {
    "Clock": "clock",
    "Testing": "app",
    "assert_added": "added",
    "perform": "performing",
    "perform_sync": "performing",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import importlib  # noqa: PLC0415 - as lazy as the modules

        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
