"""Transports: how the messages of a campaign reach their channels. `transport.py` has the contract."""

from jobwire.campaigns.transports.discovery import DEFAULT, transport_names, transport_of
from jobwire.campaigns.transports.sender import Sender
from jobwire.campaigns.transports.transport import (
    FloodWait,
    Message,
    PeerBlocked,
    Permanent,
    Receipt,
    Retryable,
    Transport,
    TransportBroken,
    TransportError,
)

__all__ = [
    "DEFAULT",
    "FloodWait",
    "Message",
    "PeerBlocked",
    "Permanent",
    "Receipt",
    "Retryable",
    "Sender",
    "Transport",
    "TransportBroken",
    "TransportError",
    "transport_names",
    "transport_of",
]
