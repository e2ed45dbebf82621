"""Type variables of jobs. Without an argument, `Job` and `ActiveJob` are of any type."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    In_co = TypeVar("In_co", covariant=True, default=Any)
    Out_co = TypeVar("Out_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    In_co = TypeVar("In_co", covariant=True)
    """The type of a job's data."""
    Out_co = TypeVar("Out_co", covariant=True)
    """The type of a job's result."""
