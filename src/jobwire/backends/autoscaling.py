"""The numbers by which KEDA, an autoscaler of Kubernetes, counts the jobs of a queue that need a worker.

Each backend that has a server has a module `operate.autoscaling` with a function `scaling(address, queue, from_zero)`.
It names the triggers of KEDA that read the store, and how their numbers are added up. The sum is the number of jobs
that wait and are due, and of those that run. Jobs that run are counted, since the last workers would otherwise be ended
while they still have work.

`from_zero` means that there may be no worker at all. Then the sum must not be 0 as long as something in the store needs
a worker later, such as a delayed job that only a worker makes ready.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobwire.errors import InvalidOption, NotSupported
from jobwire.urls import Address


@dataclass(frozen=True, slots=True)
class Trigger:
    """One number that KEDA reads from the store."""

    name: str
    kind: str
    """KEDA's name of the scaler."""
    metadata: Mapping[str, str]
    target_field: str
    """The field of the metadata for the jobs per worker."""
    secrets: tuple[str, ...] = ()
    """The parameters that come from a secret."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The triggers of a queue."""

    triggers: tuple[Trigger, ...]
    formula: str = ""
    """The sum, in terms of the triggers' names. Empty if there is one trigger."""
    secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    """A description of each parameter that comes from a secret."""
    counted_when_paused: str = ""
    """The waiting jobs that are counted even while the queue is paused, since KEDA can't read the pause. Empty if there
    are none."""


def scaling_of(address: Address, queue: str, *, from_zero: bool) -> Scaling:
    """Returns the triggers of a queue. Does not call the store. Raises NotSupported for a protocol without a server,
    and InvalidOption for a server that other machines can't reach."""
    try:
        module: Any = importlib.import_module(f"jobwire.backends.{address.protocol}.operate.autoscaling")
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith("jobwire."):
            raise
        raise NotSupported(address.protocol, "autoscaling", "its jobs are in this process") from None
    if address.transport == "embedded":
        raise unreachable(address)
    scaling: Callable[..., Scaling] = module.scaling
    return scaling(address, queue, from_zero=from_zero)


def unreachable(address: Address) -> InvalidOption:
    """Returns the error for a server without an address in the network."""
    return InvalidOption("url", address.redacted, "must be of a server that the autoscaler reaches over the network")
