"""The mail server: how it is reached, and what its refusals mean."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from windlass.core.signals import Discard
from windlass.errors import InvalidInput, WindlassError

_TIMEOUT_S = 20.0
_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
_CLOSING = 421
_FOR_GOOD = range(500, 600)


class MailServerFailed(WindlassError):
    """The mail server cannot be reached or reports a problem; counts for its breaker, and a retry may help."""


class RecipientDeferred(InvalidInput):
    """The mail server does not take mail for this recipient now; the server itself is well, and a retry may help."""


class MailServer(NamedTuple):
    """A mail server as WINDLASS_SMTP_URL describes it."""

    scheme: str
    host: str
    port: int
    user: str | None
    password: str


def read_server(url: str) -> MailServer:
    """Read an address that the settings have checked."""
    parts = urlsplit(url)
    user = None if parts.username is None else unquote(parts.username)
    port = parts.port or _PORTS[parts.scheme]
    return MailServer(parts.scheme, parts.hostname or "", port, user, unquote(parts.password or ""))


def send(server: MailServer, message: EmailMessage, sender: str, recipient: str) -> None:
    """Hand over a mail; raises Discard where no retry can help, else MailServerFailed or RecipientDeferred."""
    with _clear_errors(recipient):
        smtp = _connect(server)
        try:
            smtp.send_message(message, sender, [recipient])
        finally:
            # The mail is the server's already: a bad farewell must not send it twice.
            with suppress(smtplib.SMTPException, OSError):
                smtp.quit()
            smtp.close()


def _connect(server: MailServer) -> smtplib.SMTP:
    if server.scheme == "smtps":
        context = ssl.create_default_context()
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=_TIMEOUT_S, context=context)
    else:
        smtp = smtplib.SMTP(server.host, server.port, timeout=_TIMEOUT_S)
    try:
        if server.scheme == "smtp+starttls":
            smtp.starttls(context=ssl.create_default_context())
        if server.user is not None:
            smtp.login(server.user, server.password)
    except BaseException:
        smtp.close()
        raise
    return smtp


@contextmanager
def _clear_errors(recipient: str) -> Iterator[None]:
    """Sort what is about the recipient, the mail and the server."""
    try:
        yield
    except smtplib.SMTPRecipientsRefused as error:
        raise _refused_recipient(recipient, *error.recipients[recipient]) from error
    except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
        told = f"the mail server refused the mail: {_said(error.smtp_code, error.smtp_error)}"
        raise (Discard(told) if error.smtp_code in _FOR_GOOD else MailServerFailed(told)) from error
    except smtplib.SMTPResponseException as error:
        raise MailServerFailed(f"the mail server answered {_said(error.smtp_code, error.smtp_error)}") from error
    except (smtplib.SMTPException, OSError) as error:
        raise MailServerFailed(f"the mail server cannot be used: {str(error) or type(error).__name__}") from error


def _refused_recipient(recipient: str, code: int, text: bytes | str) -> Exception:
    said = _said(code, text)
    if code == _CLOSING:
        return MailServerFailed(f"the mail server answered {said}")
    if code in _FOR_GOOD:
        return Discard(f"the mail server refused the recipient: {said}")
    return RecipientDeferred("to", recipient, f"is not taken now: {said}")


def _said(code: int, text: bytes | str) -> str:
    return f"{code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"
