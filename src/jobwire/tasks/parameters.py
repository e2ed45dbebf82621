"""The parameters of a task and their JSON form: named arguments become one object, or the object itself for a task
whose one parameter is a class with fields."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import msgspec

from jobwire import spelling
from jobwire.errors import InvalidOption, Unrecoverable
from jobwire.tasks.depends import Dependency, is_shared
from jobwire.tasks.values import Form, Misfit, field_names, is_object

_KINDS = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


class InvalidArguments(Unrecoverable):
    """The data of a job does not fit the parameters of its task. The job fails without another attempt."""


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


class _Previous:
    """The type of `previous`."""

    def __repr__(self) -> str:
        return "previous"


previous: Any = _Previous()
"""Stands for the result of the step before, in a call of a chain: `ship.s(receipt=previous, express=True)`."""


class Given(NamedTuple):
    """The arguments of a call that may lack some."""

    data: Any
    """The JSON of the arguments that were given."""
    missing: tuple[str, ...] = ()
    """The required parameters that were not given."""
    marked: tuple[str, ...] = ()
    """The parameters that are to get the previous result."""


class Parameters:
    """The parameters of a task's function that a job has values for. Dependencies are not among them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.task = function.__name__
        signature = inspect.signature(function)
        hints = hints_of(function)
        self.result = result_form(self.task, hints.get("return", Any))
        self.dependencies: dict[str, Dependency] = {}
        self._positional: list[str] = []
        fields: list[tuple[str, Any, Any]] = []
        for name, parameter in signature.parameters.items():
            if parameter.kind in _KINDS:
                rule = f"can't have {_KINDS[parameter.kind]}{name}: each argument of a job has a name"
                raise InvalidOption("task", function, rule)
            if isinstance(parameter.default, Dependency):
                self.dependencies[name] = parameter.default
                continue
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                raise InvalidOption("task", function, f"can't have {name} as positional only: arguments are named")
            kind = hints.get(name, Any)
            _check_parameter(function, name, kind)
            if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
                self._positional.append(name)
            fields.append(_field(name, kind, parameter.default))
        self.names = tuple(name for name, *_ in fields)
        self.kinds: dict[str, Any] = {name: kind for name, kind, _ in fields}
        """The type of each parameter."""
        self.single = self.names[0] if len(fields) == 1 and is_object(hints.get(self.names[0])) else None
        """The name of the one parameter that takes the whole data, if the task has such a one."""
        self._required = frozenset(name for name, _, default in fields if default is msgspec.NODEFAULT)
        if self.single is None:
            self._form = Form(msgspec.defstruct(self.task, fields, kw_only=True))
        else:
            _, kind, self._default = fields[0]
            self._form = Form(kind)

    @property
    def shared(self) -> list[str]:
        """The names of the parameters that all jobs of a process share the value of."""
        return [name for name, one in self.dependencies.items() if is_shared(one)]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names in the job's data."""
        return self.names if self.single is None else field_names(self._form.kind)

    def write(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Returns the JSON of a call's arguments. Raises InvalidOption."""
        given = self._given(args, named)
        for name in self._required - given.keys():
            raise InvalidOption(name, _Nothing(), f"is required by task {self.task}")
        try:
            if self.single is None:
                return self._form.write(given)
            return self._form.write(given.get(self.single, self._default))
        except Misfit as misfit:
            path, rule = misfit.refusal
            if self.single is not None:
                path = f"{self.single}.{path}" if path else self.single
            raise InvalidOption(path or "data", _value_at(given, path), rule) from None

    def write_some(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Given:
        """Returns the JSON of the arguments that are given, and the names of those that are not. Raises
        InvalidOption."""
        given = self._given(args, named)
        marked = tuple(name for name in self.names if given.get(name) is previous)
        missing = tuple(name for name in self.names if name in self._required and name not in given)
        if not marked and not missing:
            return Given(self.write((), given))
        written: dict[str, Any] = {}
        for name in [name for name in self.names if name in given and name not in marked]:
            try:
                written[name] = Form(self.kinds[name]).write(given[name])
            except Misfit as misfit:
                path, rule = misfit.refusal
                where = name if not path else f"{name}{path}" if path.startswith("[") else f"{name}.{path}"
                raise InvalidOption(where, given[name], rule) from None
        return Given(written, missing, marked)

    def _given(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the arguments by name. Refuses those that are not parameters."""
        given = self._bind(args, named) if args else named
        for name in given.keys() - self.names:
            if name in self.dependencies:
                raise InvalidOption(name, given[name], "is a dependency, which the worker provides")
            raise spelling.unknown(name, given[name], self.names, f"task {self.task}", word="parameter")
        return given

    def read(self, data: Any) -> dict[str, Any]:
        """Returns the arguments that a job's data has. Raises InvalidArguments."""
        try:
            if self.single is not None:
                return {self.single: self._form.read(data)}
            if not self.names:
                return {}
            return msgspec.structs.asdict(self._form.read({} if data is None else data))
        except Misfit as misfit:
            path, rule = misfit.refusal
            where = "" if not path else path if path.startswith("[") else f".{path}"
            raise InvalidArguments(f"task {self.task}: data{where}: {rule}") from None

    def _bind(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._positional):
            raise InvalidOption(
                "arguments", args, f"must be at most {len(self._positional)} without a name for task {self.task}"
            )
        bound = dict(zip(self._positional, args, strict=False))
        for name in bound.keys() & named.keys():
            raise InvalidOption(name, named[name], "is given twice")
        return {**bound, **named}


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the annotations of a function, resolved."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        rule = f"has an annotation that can't be found ({error}): the name must be importable from the task's module"
        raise InvalidOption("task", function, rule) from None


def result_form(task: str, kind: Any) -> Form:
    """Returns the form of a task's result."""
    try:
        return Form(kind)
    except TypeError as error:
        raise InvalidOption("task", task, f"returns a type that can't be a job's result: {error}") from None


def _field(name: str, kind: Any, default: Any) -> tuple[str, Any, Any]:
    if default is inspect.Parameter.empty:
        return name, kind, msgspec.NODEFAULT
    if default is None and kind is not Any:
        return name, kind | None, None
    if isinstance(default, (list, dict, set, bytearray)):
        return name, kind, msgspec.field(default_factory=partial(copy.deepcopy, cast("Any", default)))
    return name, kind, default


def _check_parameter(function: Callable[..., Any], name: str, kind: Any) -> None:
    try:
        Form(kind)
    except TypeError as error:
        rule = (
            f"has a parameter {name} that can't be sent: {error}; give it the default Depends(…) if the worker has it"
        )
        raise InvalidOption("task", function, rule) from None


def _value_at(given: Mapping[str, Any], path: str) -> Any:
    """Returns the argument that a path begins with."""
    name = path.split(".", 1)[0].split("[", 1)[0]
    return given.get(name, _Nothing())
