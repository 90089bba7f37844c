"""A real mail server for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, cast

from aiosmtpd.smtp import SMTP, Envelope


@dataclass
class Mailbox:
    """What arrived, and what is said to some recipients instead."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """What is said to a recipient in place of yes."""
    on_data: str = "250 OK"

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    async def handle_RCPT(  # noqa: N802 - the name of aiosmtpd
        self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:  # noqa: N802 - the name of aiosmtpd
        if self.on_data.startswith("250"):
            self.mails.append(message_from_bytes(cast("bytes", envelope.content), policy=default))
            self.envelopes.append(envelope)
        return self.on_data


@asynccontextmanager
async def mail_server(port: int = 0, **options: Any) -> AsyncIterator[Mailbox]:
    """Take mail on a port of this machine."""
    box = Mailbox()
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(box, hostname="mail.test", ident="test", **options), "127.0.0.1", port
    )
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
        await server.wait_closed()
