-- Nothing has written the first table of alerts. A row begins when a condition holds; it is an alert once it is raised.
drop table windlass_alerts;
create table windlass_alerts (
    id bigint generated always as identity primary key,
    rule text not null,
    subject text not null default '',
    message text not null,
    value double precision not null default 0,
    since timestamptz not null,
    raised_at timestamptz,
    seen_at timestamptz not null,
    calm_since timestamptz,
    cleared_at timestamptz
);
create unique index windlass_alerts_open on windlass_alerts (rule, subject) where cleared_at is null;
create index windlass_alerts_cleared on windlass_alerts (cleared_at, id) where cleared_at is not null;

create table windlass_alert_silences (
    rule text not null,
    subject text not null default '',
    until timestamptz not null,
    reason text not null,
    created_by text,
    created_at timestamptz not null,
    primary key (rule, subject)
);

-- How many leases had been lost by then: what was lost within some minutes is the difference.
create table windlass_alert_marks (
    at timestamptz primary key,
    lost_leases bigint not null
);
