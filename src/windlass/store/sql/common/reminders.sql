-- name: add_reminder
insert into windlass_reminders (due_at, mail, created_at) values (:due_at, :mail::json, {now})
returning id, due_at, mail::text, job_id, enqueued_at, created_at

-- name: get_reminder
select id, due_at, mail::text, job_id, enqueued_at, created_at from windlass_reminders where id = :reminder_id

-- name: list_reminders
select id, due_at, mail::text, job_id, enqueued_at, created_at from windlass_reminders
where id > :after_reminder order by id limit :limit

-- name: due_reminders
-- A row that another producer holds is that one's to send.
select id, due_at, mail::text, job_id, enqueued_at, created_at from windlass_reminders
where enqueued_at is null and due_at <= {now} order by due_at, id limit :limit for update skip locked

-- name: delete_reminder
delete from windlass_reminders where id = :reminder_id
returning id, due_at, mail::text, job_id, enqueued_at, created_at

-- name: prune_reminders
delete from windlass_reminders where id in (
    select r.id from windlass_reminders r where r.enqueued_at < {now} - :keep_for::interval order by r.enqueued_at, r.id limit :limit
)
returning id

-- name: count_reminders
select count(*) from (select id from windlass_reminders limit :most) as counted
