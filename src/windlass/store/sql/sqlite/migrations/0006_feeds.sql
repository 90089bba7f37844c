-- A feed has one job, which is disabled while nobody subscribes. `url` is what subscribers asked for and never
-- changes; `fetch_url` is where a permanent move leads. Secrets are those of its WebSub subscription.
-- `subscribers` counts those who have not left; it changes in the transaction that changes one of them.
create table windlass_feeds (
    id integer primary key autoincrement,
    url text not null unique,
    fetch_url text,
    title text,
    site_url text,
    etag text,
    last_modified text,
    job_id integer unique,
    next_fetch_at integer,
    last_fetched_at integer,
    consecutive_failures integer not null default 0,
    counted_slot_at integer,
    last_error text,
    gone_at integer,
    subscribers integer not null default 0,
    websub_hub text,
    websub_topic text,
    websub_state text,
    websub_token text,
    websub_secret text,
    websub_asked_at integer,
    websub_expires_at integer,
    created_at integer not null,
    updated_at integer not null,
    constraint windlass_feeds_subscribers check (subscribers >= 0),
    constraint windlass_feeds_failures check (consecutive_failures >= 0),
    constraint windlass_feeds_websub check (websub_state in ('pending', 'active', 'denied'))
) strict;
create index windlass_feeds_websub_expires on windlass_feeds (websub_expires_at, id) where websub_hub is not null;

create table windlass_subscriptions (
    feed_id integer not null,
    subscriber text not null,
    created_at integer not null,
    unsubscribed_at integer,
    primary key (feed_id, subscriber)
) strict, without rowid;
create index windlass_subscriptions_subscriber on windlass_subscriptions (subscriber, feed_id) where unsubscribed_at is null;

create table windlass_entries (
    id integer primary key autoincrement,
    feed_id integer not null,
    guid text not null,
    title text,
    link text,
    author text,
    summary text,
    published_at integer,
    created_at integer not null,
    updated_at integer not null,
    unique (feed_id, guid)
) strict;
create index windlass_entries_newest on windlass_entries (feed_id, id);

-- The feed's mirror of its job's next run follows whatever moves the job, in the transaction that does: a finished run, a
-- disabled job, an operator's run-now. No verb can forget it.
create trigger windlass_jobs_feed_moved after update of state, held, run_at on windlass_jobs
when new.task = 'fetch_feed' and (new.state, new.held, new.run_at) is not (old.state, old.held, old.run_at) begin
    update windlass_feeds set next_fetch_at = case
        when new.state in ('scheduled', 'pending', 'running') and not new.held then new.run_at
    end
    where job_id = new.id;
end;
create trigger windlass_jobs_feed_deleted after delete on windlass_jobs when old.task = 'fetch_feed' begin
    update windlass_feeds set job_id = null, next_fetch_at = null where job_id = old.id;
end;
