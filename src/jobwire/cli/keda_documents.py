"""The documents of KEDA for a queue: a ScaledObject, and a TriggerAuthentication if the store wants a password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from jobwire.backends.autoscaling import Scaling, Trigger
from jobwire.cli.yaml_text import yaml_text
from jobwire.counted import counted
from jobwire.errors import InvalidOption

_LONGEST_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The numbers and names that the documents are made with, checked."""

    queue: str
    name: str
    secret: str
    fewest: int
    most: int
    per_worker: int

    def __post_init__(self) -> None:
        for field, value in (("name", self.name), ("secret", self.secret)):
            if len(value) > _LONGEST_NAME or not _NAME.fullmatch(value):
                raise InvalidOption(field, value, "must be a name in Kubernetes: lower case letters, digits, - and .")
        if self.fewest < 0:
            raise InvalidOption("min", self.fewest, "must be 0 or more")
        if self.most < max(self.fewest, 1):
            raise InvalidOption("max", self.most, f"must be {max(self.fewest, 1)} or more")
        if self.per_worker < 1:
            raise InvalidOption("per_worker", self.per_worker, "must be 1 or more")


def documents(scaling: Scaling, wanted: Wanted) -> str:
    """Returns the documents as YAML, with comments. No password is in them: it is read from a Secret."""
    parts = [yaml_text(_authentication(scaling, wanted))] if scaling.secrets else []
    parts.append(yaml_text(_scaled_object(scaling, wanted)))
    return "".join(f"# {line}\n" for line in _comments(scaling, wanted)) + "---\n".join(parts)


def _comments(scaling: Scaling, wanted: Wanted) -> list[str]:
    jobs = counted(wanted.per_worker, "job")
    lines = [
        f"Scales the Deployment {wanted.name} by the queue {wanted.queue!r}: one replica per {jobs}",
        f"waiting and due or running, from {wanted.fewest} to {wanted.most}. Needs KEDA 2.12 or later.",
    ]
    if scaling.counted_when_paused:
        lines += [
            f"Of the jobs that wait in a paused queue, {scaling.counted_when_paused} are counted: KEDA can't read the",
            "pause. Pause the ScaledObject with the queue: annotation autoscaling.keda.sh/paused-replicas.",
        ]
    if scaling.secrets:
        lines.append(f"The Secret {wanted.secret} must have these keys:")
        lines += [f"  {name}: {meaning}" for name, meaning in scaling.secrets.items()]
    return lines


def _authentication(scaling: Scaling, wanted: Wanted) -> dict[str, Any]:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "TriggerAuthentication",
        "metadata": {"name": wanted.name},
        "spec": {
            "secretTargetRef": [{"parameter": name, "name": wanted.secret, "key": name} for name in scaling.secrets]
        },
    }


def _scaled_object(scaling: Scaling, wanted: Wanted) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "scaleTargetRef": {"name": wanted.name},
        "minReplicaCount": wanted.fewest,
        "maxReplicaCount": wanted.most,
    }
    if scaling.formula:
        spec["advanced"] = {
            "scalingModifiers": {
                "formula": scaling.formula,
                "target": str(wanted.per_worker),
                "activationTarget": "0",
                "metricType": "AverageValue",
            }
        }
    spec["triggers"] = [_trigger(trigger, wanted) for trigger in scaling.triggers]
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": wanted.name},
        "spec": spec,
    }


def _trigger(trigger: Trigger, wanted: Wanted) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": trigger.kind,
        "name": trigger.name,
        "metadata": {**trigger.metadata, trigger.target_field: str(wanted.per_worker)},
    }
    return found | ({"authenticationRef": {"name": wanted.name}} if trigger.secrets else {})
