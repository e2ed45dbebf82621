-- Deletes the jobs that wait, and the delayed ones if asked.
DELETE FROM {job} j
WHERE j.name = :queue AND j.state < 'active'
    AND j.start_after <= {now} --! delayed_too
