"""Sends mails over SMTP, behind the breaker `email-service`."""

from __future__ import annotations

from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, parseaddr
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from windlass.app import Windlass
from windlass.core.signals import Discard
from windlass.packs.notify import mail_server
from windlass.packs.notify.delivery import delivery_id
from windlass.packs.notify.fields import LANE, MAX_ATTEMPTS, RETRY, TIMEOUT, Line, MailAddress, Payload
from windlass.packs.notify.template import Filled, NoTemplate, fill
from windlass.worker.context import JobContext

TASK = "email"
BREAKER = "email-service"

Text = Annotated[str, StringConstraints(max_length=500_000)]


class Email(Payload):
    """A mail to one recipient: a template with its data, or a subject with a text."""

    to: MailAddress
    template: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")] | None = None
    data: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    subject: Line | None = None
    text: Text | None = None
    html: Text | None = None
    reply_to: MailAddress | None = None

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        is_written = self.subject is not None and self.text is not None
        has_any = self.subject is not None or self.text is not None or self.html is not None
        if self.template is None and not is_written:
            raise ValueError("needs a template, or a subject and a text")
        if self.template is not None and has_any:
            raise ValueError("has a template, so it can have no subject, text or html of its own")
        return self


def install(app: Windlass) -> None:
    """Declare the task."""

    class CheckedEmail(Email):
        """A mail whose template has what it needs."""

        @model_validator(mode="after")
        def _fills_its_template(self) -> Self:
            try:
                _content(self, app.settings.mail_templates)
            except NoTemplate:
                # Only the worker needs to have it.
                return self
            except Discard as error:
                raise ValueError(str(error)) from None
            return self

    @app.task(
        name=TASK,
        lane=LANE,
        payload=CheckedEmail,
        breaker=BREAKER,
        timeout=TIMEOUT,
        retry=RETRY,
        max_attempts=MAX_ATTEMPTS,
        isolation="thread",
    )
    def email(ctx: JobContext, mail: Email) -> dict[str, str]:
        """Send a mail; a recipient that the mail server refuses for good fails it for good."""
        settings = app.settings
        if settings.smtp_url is None:
            raise Discard("there is no mail server; set WINDLASS_SMTP_URL, as in smtp://127.0.0.1:25")
        if settings.mail_from is None:
            raise Discard("mails need a sender; set WINDLASS_MAIL_FROM, as in Shop <shop@example.org>")
        name = delivery_id(ctx, app.get_sync(ctx.job_id))
        content = _content(mail, settings.mail_templates)
        message = compose(mail, content, settings.mail_from, name)
        mail_server.send(mail_server.read_server(settings.smtp_url), message, parseaddr(settings.mail_from)[1], mail.to)
        return {"to": mail.to, "message_id": str(message["Message-ID"])}


def _content(mail: Email, folder: str | None) -> Filled:
    return Filled(mail.subject or "", mail.text or "") if mail.template is None else fill(mail.template, mail.data, folder)


def compose(mail: Email, content: Filled, sender: str, name: str) -> EmailMessage:
    """Write the mail; `name` stays over retries, so that a mailbox can recognise a mail that came twice."""
    message = EmailMessage(policy=SMTP)
    message["From"] = sender
    message["To"] = mail.to
    message["Subject"] = content.subject
    message["Date"] = formatdate(localtime=True)
    message["Message-ID"] = f"<{name}@{parseaddr(sender)[1].rpartition('@')[2]}>"
    if mail.reply_to is not None:
        message["Reply-To"] = mail.reply_to
    message.set_content(content.text)
    if mail.html is not None:
        message.add_alternative(mail.html, subtype="html")
    return message
