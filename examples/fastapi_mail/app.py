"""A shop that signs people up and writes to them. The customer and the mail are one transaction: both or neither."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from windlass.fastapi import lifespan
from windlass.sqlalchemy import windlass_on
from windlass.web.server import build_server

URL = os.environ.get("SHOP_DATABASE_URL", "sqlite:///shop.db")  # or postgresql://user@host/shop

engine = create_engine(URL.replace("postgresql:", "postgresql+psycopg:", 1))
jobs = windlass_on(engine, name="shop")


class Base(DeclarativeBase):
    """The shop's own tables."""


class Customer(Base):
    """A customer who has signed up."""

    __tablename__ = "customers"
    email: Mapped[str] = mapped_column(primary_key=True)


@jobs.task(lane="fast", max_attempts=5)
async def mail(to: str, subject: str) -> str:
    """Write to a customer; a real one would use SMTP here."""
    print(f"mail to {to}: {subject}", flush=True)
    return "sent"


def session() -> Iterator[Session]:
    """Give a request its transaction: committed if all goes well, rolled back if anything is raised."""
    with Session(engine) as opened, opened.begin():
        yield opened


@asynccontextmanager
async def tables(_: FastAPI) -> AsyncIterator[None]:
    """Make the tables before anything runs."""
    jobs.migrate()
    Base.metadata.create_all(engine)
    yield
    engine.dispose()


# The jobs run in this process; `windlass worker app:jobs` would run them in others.
web = FastAPI(title="Shop", lifespan=lifespan(jobs, worker=True, around=tables))
web.mount("/ops", build_server(jobs))  # log in with WINDLASS_ADMIN_TOKEN, or with what `windlass token new` prints


class SignUp(BaseModel):
    """What a new customer sends."""

    email: str


@web.post("/customers", status_code=201)
def sign_up(body: SignUp, transaction: Annotated[Session, Depends(session, scope="function")]) -> dict[str, int]:
    """Keep a customer and enqueue the mail that greets them."""
    transaction.add(Customer(email=body.email))
    transaction.flush()
    job = mail.using(connection=transaction).enqueue_sync(to=body.email, subject="Welcome")
    if body.email.endswith("@example.invalid"):
        # Too late for a check, and on purpose: the customer and the mail are rolled back together.
        raise HTTPException(422, "this address cannot get mail")
    return {"job": job.id}


@web.get("/customers")
def customers(transaction: Annotated[Session, Depends(session, scope="function")]) -> list[str]:
    """List the customers' addresses."""
    return sorted(customer.email for customer in transaction.query(Customer))
