"""Jobs from before there were placements: one host played every role."""

from django.db import migrations

FORWARDS = """
INSERT INTO runs_placement (job_id, role, wanted_host_id, wanted_tag, host_id, avoid)
SELECT job.id, 'target', job.host_id, '', CASE WHEN job.state = 'queued' THEN NULL ELSE job.host_id END, '{}'
FROM runs_job AS job;
UPDATE runs_trial SET host_id = job.host_id
FROM runs_job AS job
WHERE job.id = runs_trial.job_id AND runs_trial.state IN ('measured', 'failed');
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_fleet_over_ssh")]

    operations = [migrations.RunSQL(FORWARDS, migrations.RunSQL.noop)]
