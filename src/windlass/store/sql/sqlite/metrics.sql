-- name: fold_counts
-- Nothing to fold: the triggers keep the counts in place.
select 0 where :limit > 0
