"""Suggestions for values that are not JSON: the end of the sentence that refuses one.

Classes of other packages are recognised by name, so that none of those packages must be installed.
"""

from __future__ import annotations

import inspect

_BY_NAME = {
    "builtins.bytes": "base64.b64encode(value).decode()",
    "builtins.bytearray": "base64.b64encode(value).decode()",
    "builtins.memoryview": "base64.b64encode(value).decode()",
    "builtins.set": "sorted(value)",
    "builtins.frozenset": "sorted(value)",
    "builtins.range": "list(value)",
    "builtins.map": "list(value)",
    "builtins.filter": "list(value)",
    "builtins.zip": "list(value)",
    "builtins.dict_keys": "list(value)",
    "builtins.dict_values": "list(value)",
    "builtins.dict_items": "dict(value)",
    "builtins.mappingproxy": "dict(value)",
    "builtins.generator": "list(value)",
    "builtins.async_generator": "[item async for item in value]",
    "builtins.coroutine": "await value",
    "builtins.complex": "[value.real, value.imag]",
    "builtins.BaseException": "str(value)",
    "collections.deque": "list(value)",
    "enum.Enum": "value.value",
    "datetime.datetime": "value.isoformat()",
    "datetime.date": "value.isoformat()",
    "datetime.time": "value.isoformat()",
    "datetime.timedelta": "value.total_seconds()",
    "decimal.Decimal": "str(value)",
    "fractions.Fraction": "str(value)",
    "uuid.UUID": "str(value)",
    "pathlib.PurePath": "str(value)",
    "pathlib._local.PurePath": "str(value)",
    "ipaddress._IPAddressBase": "str(value)",
    "pydantic.main.BaseModel": 'value.model_dump(mode="json")',
    "msgspec.Struct": "msgspec.to_builtins(value)",
    "numpy.ndarray": "value.tolist()",
    "numpy.datetime64": "str(value)",
    "numpy.timedelta64": "str(value)",
    "numpy.generic": "value.item()",
    "pandas._libs.tslibs.nattype.NaTType": "None",
    "pandas._libs.missing.NAType": "None",
    "pandas.core.frame.DataFrame": 'value.to_dict("records")',
    "pandas.core.series.Series": "value.tolist()",
    "pandas.core.indexes.base.Index": "value.tolist()",
}


def remedy(value: object) -> str:
    """Returns an expression to send instead of the value.

    >>> from pathlib import Path
    >>> remedy(Path("/tmp")), remedy({1: 2}.keys()), remedy(object())
    ('str(value)', 'list(value)', 'a dict, a list or a string')
    """
    kind = type(value)
    for one in kind.__mro__:
        if (known := _BY_NAME.get(f"{one.__module__}.{one.__qualname__}")) is not None:
            return known
    if hasattr(kind, "__dataclass_fields__"):
        return "dataclasses.asdict(value)"
    if hasattr(kind, "__attrs_attrs__"):
        return "attrs.asdict(value)"
    if inspect.isclass(value) or inspect.isroutine(value):
        return f"its name, {getattr(value, '__name__', '')!r}"
    return "a dict, a list or a string"
