"""What a server does and prints before it listens."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import shlex
from typing import NamedTuple

from windlass.config import Settings
from windlass.core.access import NewToken, Role
from windlass.core.audit import Actor
from windlass.errors import ConfigError
from windlass.web.credentials import LINK_LASTS
from windlass.web.server import Server

log = logging.getLogger("windlass.web")

_ACTOR = Actor("windlass")
_EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - named to be distinguished from loopback


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_SECRETS = ("admin_token", "jwt_secret", "worker_secret", "webhook_secret", "metrics_token")


def warn_of_weak_secrets(settings: Settings) -> None:
    """Log which configured secrets are long enough but easy to guess."""
    configured = [(name, getattr(settings, name)) for name in _SECRETS]
    configured += [("worker_signing_secret", secret) for secret in settings.worker_signing_secret or ()]
    for name, secret in configured:
        why = None if secret is None else weakness_of(secret)
        if why is not None:
            log.warning("WINDLASS_%s %s; use random characters", name.upper(), why)


async def prepare(server: Server) -> str | None:
    """Make the first token where no login is possible; returns its secret. Refuses to be open to others without credentials."""
    warn_of_weak_secrets(server.app.settings)
    if server.credentials.is_configured or await server.app.tokens.count_live():
        return None
    host = server.app.settings.host
    if not is_loopback(host):
        raise ConfigError(
            f"listening on {host} needs credentials: set WINDLASS_ADMIN_TOKEN or "
            "WINDLASS_JWT_SECRET, or make a token with `windlass token new me --role admin`; or listen on 127.0.0.1"
        )
    return (await server.app.acting(_ACTOR).tokens.mint(NewToken(name="first", role=Role.ADMIN))).secret


def url_of(host: str, port: int) -> str:
    """Write where to find the server from this machine."""
    name = "127.0.0.1" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


class Line(NamedTuple):
    """A line of the greeting."""

    label: str
    text: str


def greeting(server: Server, port: int, first_token: str | None, *, is_private: bool, task: str | None = None) -> list[Line]:
    """Return where the server is and how to get in; secrets are shown only where no other reads along.

    The command to try enqueues a job of `task`, or only looks.
    """
    url = url_of(server.app.settings.host, port)
    lines = [Line("listening on", url)]
    if first_token is not None:
        lines.append(Line("admin token", f"{first_token} (shown this once)"))
    if not is_private:
        return [*lines, Line("log in", f"{url}/login")]
    minutes = int(LINK_LASTS.total_seconds() // 60)
    bearer = "$WINDLASS_ADMIN_TOKEN" if server.app.settings.admin_token else first_token or server.credentials.new_start_token()
    lines.append(Line("log in", f"{url}/login?code={server.credentials.new_code()} (once, within {minutes} minutes)"))
    lines.append(Line("try:", curl_line(url, bearer, task=task)))
    return lines


def curl_line(url: str, bearer: str, *, task: str | None) -> str:
    """Write a command that enqueues a job of a task, or only looks."""
    allowed = f'curl -H "Authorization: Bearer {bearer}"'
    if task is None:
        return f"{allowed} {shlex.quote(url + '/api/v1/lanes')}"
    body = shlex.quote(json.dumps({"task": task}))
    return f'{allowed} -H "Content-Type: application/json" -d {body} {shlex.quote(url + "/api/v1/jobs")}'


_LEAST_DISTINCT = 8
_REPEATED = re.compile(r"(.{1,8})\1+.{0,7}", re.DOTALL)
_COMMON = re.compile(r"password|passw0rd|changeme|change-me|letmein|qwert|0123456|1234567|abcdefg", re.IGNORECASE)


def weakness_of(secret: str) -> str | None:
    """Return why a secret is easy to guess, without showing it; None where it is not."""
    if len(set(secret)) < _LEAST_DISTINCT:
        return f"has fewer than {_LEAST_DISTINCT} different characters"
    if _REPEATED.fullmatch(secret):
        return "repeats a few characters"
    if secret.isdecimal():
        return "is made of digits only"
    return "contains a word that an attacker tries first" if _COMMON.search(secret) else None
