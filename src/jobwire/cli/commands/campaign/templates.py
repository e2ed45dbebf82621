"""`jobwire campaign templates` and `jobwire campaign templates add`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, JsonLines, QueueSchema, Schema, Url, only_after
from jobwire.cli.groups import Commands
from jobwire.cli.parameters import examples

if TYPE_CHECKING:
    from jobwire.campaigns import CampaignService, Template

app = Commands(name="templates", rich_markup_mode="rich")


@app.callback(
    invoke_without_command=True,
    epilog=examples("jobwire campaign templates", "jobwire campaign templates add hello --content 'Hello {username}!'"),
)
def templates(
    context: typer.Context,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: JsonLines = False,
) -> None:
    """List the templates, or add one."""
    if only_after(context):
        return
    from jobwire.cli.commands.campaign.session import Where, ask, nothing, pages
    from jobwire.cli.commands.campaign.views import columns, one_line, record
    from jobwire.cli.output import console, emit, printable

    async def question(campaigns: CampaignService) -> list[Template]:
        return [template async for page in pages(campaigns.templates) for template in page]

    found = ask(Where(url, schema, queue_schema), question)
    if not found:
        nothing("there are no templates: `jobwire campaign templates add NAME --content TEXT` adds one")
    if as_json:
        for template in found:
            emit(record(template))
        return
    out = console()
    table = columns("template", "media", "content")
    for template in found:
        text = one_line(template.content, 200)
        table.add_row(printable(template.name), template.media_type or "-", text)
    out.print(table, markup=False)


@app.command(
    epilog=examples(
        "jobwire campaign templates add hello --content 'Hello {username}, meet {product}!'",
        "jobwire campaign templates add hello --content - < hello.txt",
        "jobwire campaign templates add photo --content 'Look!' --media-type PHOTO --media-url https://example.com/a.jpg",
    )
)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The template's name.", show_default=False)],
    *,
    content: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="The text. {username} and {category} are the channel's, {other} is a parameter of the campaign, and "
            "{{ is a brace. - reads it from stdin.",
            show_default=False,
        ),
    ],
    media_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="PHOTO, VIDEO or DOCUMENT.", show_default=False)
    ] = None,
    media_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The http or https URL of the media.", show_default=False)
    ] = None,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
) -> None:
    """Add a template: a text with parameters in braces, perhaps with media."""
    from jobwire.campaigns import MessageTemplate
    from jobwire.campaigns.templates import OF_CHANNEL
    from jobwire.cli.commands.campaign.session import Where, ask
    from jobwire.cli.commands.campaign.views import quoted
    from jobwire.cli.output import remark

    text = _read() if content == "-" else content
    kind = media_type.upper() if media_type is not None else None
    names = [one for one in MessageTemplate(text, kind, media_url).names if one not in OF_CHANNEL]
    made = ask(
        Where(url, schema, queue_schema),
        lambda campaigns: campaigns.add_template(name, text, media_type=kind, media_url=media_url),
    )
    typer.echo(f"added template {quoted(made.name)}")
    if names:
        remark(f"a campaign with it needs {' '.join(f'--param {one}=…' for one in names)}")


def _read() -> str:
    """Returns the text on stdin, without the line end that most programs add."""
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"the text on stdin is not UTF-8 (byte {error.start + 1})") from None
    return text.removesuffix("\n").removesuffix("\r")
