-- Failures in a row of closed breakers, counted over all processes. A row is there only while a service fails: a success removes
-- it, so work that goes well writes nothing.
create table windlass_breaker_failures (
    breaker text primary key,
    failures bigint not null
);
