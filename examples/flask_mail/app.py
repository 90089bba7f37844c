"""A shop in Flask that signs people up and writes to them. The customer and the mail are one transaction: both or neither."""

from __future__ import annotations

import os

from flask import Flask, abort, current_app, request
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from windlass.flask import FlaskWindlass
from windlass.sqlalchemy import windlass_on

URL = os.environ.get("SHOP_DATABASE_URL", "sqlite:///shop.db")  # or postgresql://user@host/shop

engine = create_engine(URL.replace("postgresql:", "postgresql+psycopg:", 1))
jobs = windlass_on(engine, name="shop")
flask_jobs = FlaskWindlass(jobs)


@jobs.task(lane="fast", max_attempts=5)
def mail(to: str, subject: str) -> str:
    """Write to a customer; a real one would use SMTP here."""
    text = f"mail from {current_app.config['SENDER']} to {to}: {subject}"
    print(text, flush=True)
    return text


def sign_up() -> dict[str, int]:
    """Keep a customer and enqueue the mail that greets them."""
    email = request.form["email"]
    with Session(engine) as session, session.begin():
        session.execute(text("insert into customers (email) values (:email)"), {"email": email})
        job = mail.using(connection=session).enqueue_sync(to=email, subject="Welcome")
        if email.endswith("@example.invalid"):
            # Too late for a check, and on purpose: the customer and the mail are rolled back together.
            abort(422)
    return {"job": job.id}


def create_app() -> Flask:
    """Make the web application; `flask --app app windlass worker` finds it as `flask run` does."""
    web = Flask("shop")
    web.config["SENDER"] = "shop@example.org"
    flask_jobs.init_app(web)
    web.add_url_rule("/customers", view_func=sign_up, methods=["POST"])
    jobs.migrate()
    with engine.begin() as connection:
        connection.execute(text("create table if not exists customers (email text primary key)"))
    return web
