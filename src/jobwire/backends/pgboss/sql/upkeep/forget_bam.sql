-- Deletes background index builds of a table that is about to be deleted.
DELETE FROM {schema}.bam WHERE table_name = :table AND status IN ('pending', 'in_progress', 'failed')
