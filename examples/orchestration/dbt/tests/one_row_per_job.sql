-- A job is known by its store, its queue and its id.
select store, queue, id, count(*) as copies
from {{ source('jobwire', 'silver_jobs') }}
group by store, queue, id
having count(*) > 1
