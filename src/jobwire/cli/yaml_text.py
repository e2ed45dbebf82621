"""Writes documents of dicts, lists, texts and numbers as YAML.

Texts are always in double quotes, which in YAML mean the same as in JSON, so that no text is taken for a number or a
comment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast


def yaml_text(document: Mapping[str, Any]) -> str:
    """Returns one document.

    >>> print(yaml_text({"spec": {"triggers": [{"type": "redis", "max": 3}], "labels": {}}}), end="")
    spec:
      triggers:
        - type: "redis"
          max: 3
      labels: {}
    """
    return "".join(f"{line}\n" for line in _lines(document))


def _lines(value: Mapping[str, Any] | Sequence[Any]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if _is_nested(inner):
                yield f"{key}:"
                yield from (f"  {line}" for line in _lines(inner))
            else:
                yield f"{key}: {json.dumps(inner)}"
        return
    for item in value:
        first, *others = _lines(item) if _is_nested(item) else [json.dumps(item)]
        yield f"- {first}"
        yield from (f"  {line}" for line in others)


def _is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, Sequence)) and not isinstance(value, str) and len(cast("Any", value)) > 0
