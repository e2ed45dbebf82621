"""Templates: what campaigns send."""

from __future__ import annotations

from jobwire.campaigns.ids import new_id
from jobwire.campaigns.models import Template
from jobwire.campaigns.store.table import PAGE, Connection, Table
from jobwire.campaigns.templates import MessageTemplate


class Templates(Table[Template]):
    """The table `templates`."""

    kind = "template"
    name = "templates"
    row = Template

    async def add(self, connection: Connection, name: str, message: MessageTemplate) -> Template:
        """Adds a template."""
        values = {
            "id": new_id(),
            "name": name,
            "content": message.content,
            "media_type": message.media_type,
            "media_url": message.media_url,
        }
        [made] = await self.rows(connection, "add", values)
        return made

    async def page(self, connection: Connection, *, limit: int = PAGE, after: str = "") -> list[Template]:
        """Returns templates in the order of their ids, beginning after an id."""
        return await self.rows(connection, "list", {"limit": limit, "after": after})
