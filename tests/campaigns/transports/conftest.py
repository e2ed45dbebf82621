from __future__ import annotations

import pytest


@pytest.fixture
def telegram_session() -> str:
    """The text of a session with a made-up key, whose server is a port of this machine where nothing listens."""
    from telethon.crypto import AuthKey
    from telethon.sessions import StringSession

    session = StringSession()
    session.set_dc(2, "127.0.0.1", 1)
    session.auth_key = AuthKey(bytes(range(256)))
    return session.save()
