-- Nothing has written the first table of alerts. A row begins when a condition holds; it is an alert once it is raised.
drop table windlass_alerts;
create table windlass_alerts (
    id integer primary key autoincrement,
    rule text not null,
    subject text not null default '',
    message text not null,
    value real not null default 0,
    since integer not null,
    raised_at integer,
    seen_at integer not null,
    calm_since integer,
    cleared_at integer
) strict;
create unique index windlass_alerts_open on windlass_alerts (rule, subject) where cleared_at is null;
create index windlass_alerts_cleared on windlass_alerts (cleared_at, id) where cleared_at is not null;

create table windlass_alert_silences (
    rule text not null,
    subject text not null default '',
    until integer not null,
    reason text not null,
    created_by text,
    created_at integer not null,
    primary key (rule, subject)
) strict;

-- How many leases had been lost by then: what was lost within some minutes is the difference.
create table windlass_alert_marks (
    at integer primary key,
    lost_leases integer not null
) strict;
