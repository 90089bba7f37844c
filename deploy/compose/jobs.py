"""The application that compose.yaml runs; put yours in its place."""

from windlass import Windlass

app = Windlass()  # the database is that of WINDLASS_DATABASE_URL


@app.task(every="1m")
async def heartbeat() -> str:
    """Run once a minute, so that the pages have something to show."""
    return "alive"
