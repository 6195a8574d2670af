"""Ids of metrics and series that nobody can use up, and custom metrics of teams.

It rewrites readings, series and points, and locks them meanwhile; decision 0041 says for how long,
and why there is no slower way without a lock. Both are done before the first release.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

#: Custom metrics that one team alone used become its own; those of several stay without a team.
OWN = """
UPDATE results_metric metric SET team_id = used.team
FROM (
    SELECT series.metric_id, min(project.team_id) AS team
    FROM results_series series
    JOIN benchmarks_benchmark benchmark ON benchmark.id = series.benchmark_id
    JOIN benchmarks_project project ON project.id = benchmark.project_id
    GROUP BY series.metric_id HAVING min(project.team_id) = max(project.team_id)
) used
WHERE used.metric_id = metric.id AND metric.key LIKE 'script.%';
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_quotas"), ("results", "0016_annotations")]

    operations = [
        migrations.AddField(
            model_name="metric",
            name="team",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.team",
            ),
        ),
        migrations.RunSQL(OWN, migrations.RunSQL.noop),
        # What the foreign keys still have to check of it would stop the tables from being altered.
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="changedseries",
            name="series",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), size=None
            ),
        ),
        migrations.AlterField(
            model_name="metric",
            name="id",
            field=models.AutoField(primary_key=True, serialize=False),
        ),
        migrations.AlterField(
            model_name="metric", name="key", field=models.CharField(max_length=60)
        ),
        migrations.AlterField(
            model_name="reading",
            name="metrics",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.IntegerField(), size=None
            ),
        ),
        migrations.AlterField(
            model_name="series",
            name="id",
            field=models.BigAutoField(primary_key=True, serialize=False),
        ),
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.UniqueConstraint(
                fields=("team", "key"), name="metric_once", nulls_distinct=False
            ),
        ),
    ]
