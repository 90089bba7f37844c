"""Which names stand for secrets."""

from __future__ import annotations

import pytest

from windlass.errors import InvalidInput
from windlass.secret_names import REDACTED, redact

SECRET_KEYS = """
password PASSWORD passwd db_password userPassword passwordHash pwd passphrase
secret client_secret clientSecret JWTSecret aws_secret_access_key secrets
token access_token accessToken accesstoken X-Auth-Token tokens refresh.token
api_key apikey apiKey APIKey X-Api-Key private_key privateKey accessKeys
authorization Proxy-Authorization auth basic_auth credential credentials
cookie Set-Cookie cookies session session_id sessionId sessionid sessionKey
""".split()  # noqa: SIM905 - a list literal would be fifty lines


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_value_under_a_secret_looking_key_is_redacted(key: str) -> None:
    assert redact({key: "hunter2"}) == {key: REDACTED}


@pytest.mark.parametrize(
    "key",
    [
        "token_count",
        "tokenizer",
        "secretary",
        "author",
        "authority",
        "session_ttl",
        "passwordUpdatedAt",
        "key",
        "monkey",
        "compass",
        "",
    ],
)
def test_a_value_that_only_describes_a_secret_is_shown(key: str) -> None:
    assert redact({key: "shown"}) == {key: "shown"}


@pytest.mark.parametrize(("key", "value"), [("max_tokens", 4096), ("has_password", True), ("token", None)])
def test_counts_flags_and_nulls_are_not_secrets(key: str, value: object) -> None:
    assert redact({key: value}) == {key: value}


def test_redaction_reaches_every_depth_and_hides_whole_objects() -> None:
    value = {"a": [{"token": "x", "b": 1}], "auth": {"user": "me"}, "pin": 1234}
    assert redact(value) == {"a": [{"token": REDACTED, "b": 1}], "auth": REDACTED, "pin": REDACTED}


def test_redaction_leaves_the_original_alone() -> None:
    value = {"a": [{"token": "x"}]}
    redact(value)
    assert value == {"a": [{"token": "x"}]}


def test_an_error_shows_a_value_only_where_its_name_is_no_secret() -> None:
    assert str(InvalidInput("user.password", 1234, "must be str")) == "user.password: must be str"
    assert str(InvalidInput("user.name", 1234, "must be str")) == "user.name: must be str (got 1234)"
    assert str(InvalidInput("url", "https://ann:1234@a/b@c", "is odd")) == "url: is odd (got 'https://…@a/b@c')"
    assert "1234" not in str(InvalidInput("user", {"pin": 1234, "all": [{"token": "1234"}]}, "is odd"))
