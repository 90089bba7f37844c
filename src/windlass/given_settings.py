"""The settings that an application may be given as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from windlass.core.access import Role
from windlass.core.durations import Duration

Names = str | list[str] | tuple[str, ...]


class GivenSettings(TypedDict, total=False):
    """Every setting by its name in windlass.toml; None is one that is not given."""

    statement_timeout: Duration | None
    listen_url: str | None
    version: str | None
    host: str | None
    port: int | None
    admin_token: str | None
    jwt_secret: str | None
    jwt_public_key: str | None
    jwt_jwks: str | None
    jwt_audience: str | None
    jwt_issuer: str | None
    jwt_default_role: Role | str | None
    worker_secret: str | None
    worker_signing_secret: Names | None
    metrics_token: str | None
    allowed_hosts: Names | None
    trusted_proxies: Names | None
    connections_per_address: int | None
    public_url: str | None
    max_body_bytes: int | None
    pools: str | Mapping[str, int] | None
    process_per_pool: bool | None
    tasks: Names | None
    lease_seconds: Duration | None
    poll_interval: Duration | None
    aging_interval: Duration | None
    retention_interval: Duration | None
    reclaim_interval: Duration | None
    keep_executions: int | None
    keep_days: int | None
    keep_dead_days: int | None
    prefetch: int | None
    fast_timeout: Duration | None
    timeout: Duration | None
    retry_base: Duration | None
    retry_cap: Duration | None
    retry_jitter: float | None
    breaker_threshold: int | None
    breaker_open: Duration | None
    grace: Duration | None
    accept_unknown: bool | None
    packs: Names | None
    allow_private_addresses: bool | None
    smtp_url: str | None
    mail_from: str | None
    mail_templates: str | None
    webhook_secret: str | None
    alerts: str | None
    alert_webhook: str | None
    alert_mail: str | None
    otel: bool | None
    crawl_delay: Duration | None
    max_feed_bytes: int | None
    stale_days: int | None
    reset_crawling_after_min: int | None
    lease_sec_default: int | None
    backoff_base_sec: int | None
    backoff_max_sec: int | None
    pick_order: str | None
    max_attempts_default: int | None
