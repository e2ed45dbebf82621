"""Users: those who create campaigns."""

from __future__ import annotations

from jobwire import checks
from jobwire.campaigns.ids import new_id
from jobwire.campaigns.models import User
from jobwire.campaigns.store.table import PAGE, Connection, Table


class Users(Table[User]):
    """The table `users`."""

    kind = "user"
    name = "users"
    row = User

    async def add(self, connection: Connection, username: str) -> User:
        """Adds a user."""
        [made] = await self.rows(connection, "add", {"id": new_id(), "username": checks.text("username", username)})
        return made

    async def page(self, connection: Connection, *, limit: int = PAGE, after: str = "") -> list[User]:
        """Returns users in the order of their ids, beginning after an id."""
        return await self.rows(connection, "list", {"limit": limit, "after": after})
