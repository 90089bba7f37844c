"""A Windlass server from another Python program: `Client` for blocking code, `AsyncClient` for asyncio.

Both take the server's address (several, or a list with commas, are tried in turn when one cannot be reached; default
WINDLASS_URL, else http://127.0.0.1:8060), a token (default WINDLASS_TOKEN), how long one request may take, and how often to try
again when the connection fails; a pull worker also says its name. Only what does no harm twice is sent twice: questions,
enqueues with a unique key, reports of pull workers, and requests that never left this machine.
"""

from windlass.errors import Forbidden as Forbidden
from windlass.errors import NotFound as NotFound
from windlass.errors import Refused as Refused
from windlass.errors import RemoteError as RemoteError
from windlass.errors import ServerUnavailable as ServerUnavailable
from windlass.errors import TooManyRequests as TooManyRequests
from windlass.errors import Unauthorized as Unauthorized
from windlass.remote.async_client import AsyncClient as AsyncClient
from windlass.remote.client import Client as Client
from windlass.remote.jobs import EnqueueOptions as EnqueueOptions
from windlass.remote.jobs import JobFilter as JobFilter
from windlass.remote.jobs import JobForm as JobForm
from windlass.remote.records import Breaker as Breaker
from windlass.remote.records import Change as Change
from windlass.remote.records import DeadLetter as DeadLetter
from windlass.remote.records import Enqueued as Enqueued
from windlass.remote.records import Execution as Execution
from windlass.remote.records import Item as Item
from windlass.remote.records import Job as Job
from windlass.remote.records import Lane as Lane
