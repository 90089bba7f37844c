"""A Windlass server from another Python program: `Client` for blocking code, `AsyncClient` for asyncio.

Both take the server's address (several, or a list with commas, are tried in turn when one cannot be reached; default
WINDLASS_URL, else http://127.0.0.1:8060), a token (default WINDLASS_TOKEN), how long one request may take, how often to try
again when the connection fails, and a function that is asked for more headers before each request; a pull worker also sends its
name. Only what does no harm twice is sent twice: questions, enqueues with a unique key, reports of pull workers, and requests
that never left this machine.
"""

from windlass.errors import Forbidden, NotFound, Refused, RemoteError, ServerUnavailable, TooManyRequests, Unauthorized
from windlass.http_client.client import AsyncClient, Client
from windlass.http_client.jobs import EnqueueOptions, JobForm

__all__ = [
    "AsyncClient",
    "Client",
    "EnqueueOptions",
    "Forbidden",
    "JobForm",
    "NotFound",
    "Refused",
    "RemoteError",
    "ServerUnavailable",
    "TooManyRequests",
    "Unauthorized",
]
