"""The shapes of requests. Their values are checked by the service, so that the API and the command line refuse the same
things with the same words; here are only names, types, and what no database can store."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, cast

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from jobwire.campaigns.states import CampaignStatus
from jobwire.errors import InvalidOption
from jobwire.spelling import closest, unknown

MOST = 1000
"""Rows of a page at most."""
MOST_PREVIEWS = 100


def _storable(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("storable", "must not contain NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("storable", "must be valid Unicode (it has a lone surrogate)") from None
    return text


Text = Annotated[str, AfterValidator(_storable)]

CampaignKey = Annotated[
    Text, Path(description="The campaign's id, or its name if that has no slash.", examples=["spring"])
]
ChannelKey = Annotated[Text, Path(description="The channel's id or username.", examples=["@news"])]


class Given(BaseModel):
    """Refuses unknown names with a suggestion."""

    model_config = ConfigDict(extra="forbid")
    what: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _known_names_only(cls, given: Any) -> Any:
        fields = cast("dict[str, Any] | None", given if isinstance(given, dict) else None)
        if fields is not None:
            for name, value in fields.items():
                if name not in cls.model_fields:
                    error = unknown(name, value, cls.model_fields, cls.what, word="field")
                    context = {"field": name, "rule": error.rule, "value": value}
                    raise PydanticCustomError("unknown_name", "is unknown", context)
        return cast("Any", given)


class Body(Given):
    """A JSON object. Numbers are not read from texts, nor texts from numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewCampaign(Body):
    """A campaign to create."""

    what: ClassVar[str] = "a campaign"
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "spring",
                    "batch": "news",
                    "template": "hello",
                    "rate": 60,
                    "params": {"product": "Tea"},
                    "mode": "LIVE",
                }
            ]
        }
    )

    name: Text = Field(description="At most 200 characters.")
    batch: Text = Field(description="The id or the name of the batch of channels.")
    template: Text = Field(description="The id or the name of the template.")
    rate: int = Field(description="Messages per minute, at least 1.")
    params: dict[str, Any] = Field(default={}, description="Values of the template's parameters: texts and numbers.")
    mode: Text = Field(default="TEST", description="TEST or LIVE. In TEST mode no real channel gets a message.")
    retry_limit: int = Field(default=3, description="Attempts after the first one, 0 to 1,000.")
    description: Text | None = None
    created_by: Text | None = Field(default=None, description="The id or the username of a user.")


class Pause(Body):
    """A pause."""

    what: ClassVar[str] = "a pause"
    reason: Text | None = Field(default=None, description="Shown with the campaign.", examples=["typo in the text"])


class NewRate(Body):
    """Another delivery rate."""

    what: ClassVar[str] = "a rate"
    rate: int = Field(description="Messages per minute, at least 1.", examples=[120])


class NewTemplate(Body):
    """A template to add."""

    what: ClassVar[str] = "a template"
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "hello", "content": "Hello {username}, meet {product}!"}]}
    )

    name: Text = Field(description="At most 200 characters.")
    content: Text = Field(description="The text, with parameters in braces. `{{` and `}}` are single braces.")
    media_type: Text | None = Field(default=None, description="PHOTO, VIDEO or DOCUMENT; needs a media_url.")
    media_url: Text | None = Field(default=None, description="An http or https URL; needs a media_type.")


class PageQuery(Given):
    """A page of a list. The rows are in the order of their ids."""

    what: ClassVar[str] = "this list"
    limit: int = Field(default=100, description=f"Rows of the page, 1 to {MOST}.")
    after: Text = Field(default="", description="The `next` of the page before.")

    def checked_limit(self) -> int:
        """Returns the number of rows. Refuses one that is out of range."""
        return checked_limit(self.limit, MOST)


class CampaignQuery(PageQuery):
    """A page of campaigns."""

    status: Text | None = Field(default=None, description="Only campaigns in this state.", examples=["RUNNING"])

    def checked_status(self) -> CampaignStatus | None:
        """Returns the state. Refuses an unknown one with a suggestion."""
        if self.status is None or self.status in list(CampaignStatus):
            return None if self.status is None else CampaignStatus(self.status)
        near = closest(self.status.upper(), list(CampaignStatus))
        hint = f"; did you mean {near}?" if near else ""
        raise InvalidOption("status", self.status, f"must be one of {', '.join(CampaignStatus)}{hint}")


class ChannelQuery(PageQuery):
    """A page of channels."""

    batch: Text | None = Field(default=None, description="Only channels of this batch, given by id or name.")
    active: bool | None = Field(default=None, description="Only active or only inactive channels.")


class PreviewQuery(Given):
    """A number of previews."""

    what: ClassVar[str] = "a preview"
    limit: int = Field(default=3, description=f"Channels, 1 to {MOST_PREVIEWS}.")


class ImportQuery(Given):
    """The options of an import."""

    what: ClassVar[str] = "an import"
    batch: Text | None = Field(
        default=None, description="All channels of the file are listed in this batch. It is added if it does not exist."
    )
    skip_bad: bool = Field(default=False, description="Import the good lines of a file that has bad ones.")


def checked_limit(limit: int, most: int) -> int:
    """Returns a number of rows. Refuses one that is out of range."""
    if not 1 <= limit <= most:
        raise InvalidOption("limit", limit, f"must be from 1 to {most:,}")
    return limit


Paged = Annotated[PageQuery, Query()]
PagedCampaigns = Annotated[CampaignQuery, Query()]
PagedChannels = Annotated[ChannelQuery, Query()]
Previewed = Annotated[PreviewQuery, Query()]
Imported = Annotated[ImportQuery, Query()]
