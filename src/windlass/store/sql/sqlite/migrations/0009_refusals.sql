-- The worker that a token is for: nobody else may be called by it. Older tokens are bound to their name.
alter table windlass_tokens add column worker text;
update windlass_tokens set worker = name where role = 'worker';
