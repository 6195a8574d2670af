"""Measurements become one reading a trial, and points: their rollup by series and commit.

What exactly older trials measured is taken from their definition as a whole.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

READINGS = """
INSERT INTO results_reading (id, case_id, commit_id, at, host_id, validity, metrics, "values")
SELECT trial.id, trial.case_id, variant.commit_id, coalesce(trial.started_at, job.created_at),
       coalesce(trial.host_id, job.host_id), trial.validity,
       array_agg(m.metric_id ORDER BY m.metric_id), array_agg(m.value ORDER BY m.metric_id)
FROM results_measurement m
JOIN runs_trial trial ON trial.id = m.trial_id
JOIN runs_variant variant ON variant.id = trial.variant_id
JOIN runs_job job ON job.id = trial.job_id
GROUP BY trial.id, variant.commit_id, job.created_at, job.host_id;
"""

MEASUREMENTS = """
INSERT INTO results_measurement (trial_id, metric_id, value)
SELECT reading.id, pair.metric, pair.value
FROM results_reading reading
JOIN runs_trial trial USING (id), unnest(metrics, "values") AS pair(metric, value);
"""

SERIES = """
INSERT INTO results_series (benchmark_id, case_id, host_id, metric_id)
SELECT DISTINCT c.benchmark_id, reading.case_id, reading.host_id, pair.metric
FROM results_reading reading
JOIN benchmarks_case c ON c.id = reading.case_id, unnest(metrics) AS pair(metric);
"""

NUMBER = """
CREATE FUNCTION pg_temp.number_of(told text, size int) RETURNS bigint LANGUAGE sql AS $$
    SELECT CASE size WHEN 8 THEN ('x' || left(digest, 16))::bit(64)::bigint
                     ELSE ('x' || left(digest, 8))::bit(32)::int END
    FROM encode(sha256(convert_to(told, 'UTF8')), 'hex') AS digest
$$;
"""

POINTS = """
INSERT INTO results_point
    (series_id, commit_id, epoch, shape, position, at, n, suspect, invalid, mean, mean_log, m2_log,
     "values", blocks)
SELECT series_id, commit_id, epoch, shape, position, max(at), count(*) FILTER (WHERE counts),
       count(*) FILTER (WHERE validity = 'suspect'), count(*) FILTER (WHERE NOT counts),
       avg(value) FILTER (WHERE counts),
       CASE WHEN min(value) FILTER (WHERE counts) > 0
            THEN avg(ln(value)) FILTER (WHERE counts AND value > 0) END,
       CASE WHEN min(value) FILTER (WHERE counts) > 0
            THEN coalesce(regr_sxx(ln(value), ln(value)) FILTER (WHERE counts AND value > 0), 0) END,
       coalesce(array_agg(value ORDER BY id) FILTER (WHERE counts), '{}'),
       coalesce(array_agg(block ORDER BY id) FILTER (WHERE counts), '{}')
FROM (
    SELECT series.id AS series_id, reading.id, reading.commit_id, pair.value, reading.at,
           reading.validity, reading.validity <> 'invalid' AS counts, project_commit.position,
           (SELECT count(*) FROM fleet_hostchange change WHERE change.host_id = reading.host_id
                AND change.at <= coalesce(snapshot.taken_at, reading.at)) AS epoch,
           pg_temp.number_of(definition.digest, 4)::int AS shape,
           pg_temp.number_of(job.id || ':' || trial.round, 8) AS block
    FROM results_reading reading
    JOIN runs_trial trial USING (id)
    JOIN runs_job job ON job.id = trial.job_id
    JOIN runs_run run ON run.id = job.run_id
    JOIN benchmarks_definition definition ON definition.id = run.definition_id
    JOIN benchmarks_commit project_commit ON project_commit.id = reading.commit_id
    LEFT JOIN fleet_hostsnapshot snapshot ON snapshot.id = job.snapshot_id
    CROSS JOIN LATERAL unnest(metrics, "values") AS pair(metric, value)
    JOIN results_series series ON series.case_id = reading.case_id
        AND series.host_id = reading.host_id AND series.metric_id = pair.metric
) AS each
GROUP BY series_id, commit_id, epoch, shape, position;
"""

MOVE = """
CREATE FUNCTION pitwall_move_points() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE results_point SET position = NEW.position WHERE commit_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER move_points AFTER UPDATE OF position ON benchmarks_commit
    FOR EACH ROW WHEN (OLD.position IS DISTINCT FROM NEW.position)
    EXECUTE FUNCTION pitwall_move_points();
"""

DO_NOT_MOVE = """
DROP TRIGGER move_points ON benchmarks_commit;
DROP FUNCTION pitwall_move_points();
"""

INSERT_ONLY = """
CREATE TRIGGER insert_only BEFORE UPDATE ON results_reading
    FOR EACH ROW EXECUTE FUNCTION pitwall_refuse_update();
"""


class Migration(migrations.Migration):

    dependencies = [
        ("benchmarks", "0003_versions_never_change"),
        ("fleet", "0003_host_changes"),
        ("runs", "0008_pairwise_schedules"),
        ("results", "0007_saved_reports"),
    ]

    operations = [
        migrations.CreateModel(
            name='Reading',
            fields=[
                ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('validity', models.CharField(max_length=8)),
                ('metrics', django.contrib.postgres.fields.ArrayField(base_field=models.SmallIntegerField(), size=None)),
                ('values', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                ('provenance', models.JSONField(null=True)),
                ('case', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='readings', to='benchmarks.case')),
                ('commit', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='readings', to='benchmarks.commit')),
                ('host', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='readings', to='fleet.host')),
            ],
        ),
        migrations.CreateModel(
            name='Series',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='series', to='benchmarks.benchmark')),
                ('case', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='series', to='benchmarks.case')),
                ('host', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='series', to='fleet.host')),
                ('metric', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='series', to='results.metric')),
            ],
            options={
                'verbose_name_plural': 'series',
            },
        ),
        migrations.CreateModel(
            name='Point',
            fields=[
                ('pk', models.CompositePrimaryKey('series_id', 'commit_id', 'epoch', 'shape', blank=True, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField(help_text='Of its newest trial.')),
                ('mean', models.FloatField(null=True)),
                ('mean_log', models.FloatField(null=True)),
                ('m2_log', models.FloatField(null=True)),
                ('position', models.IntegerField(null=True)),
                ('shape', models.IntegerField()),
                ('epoch', models.SmallIntegerField()),
                ('n', models.SmallIntegerField(help_text='Trials that count: valid or suspect.')),
                ('suspect', models.SmallIntegerField()),
                ('invalid', models.SmallIntegerField(help_text='Trials that were left out.')),
                ('values', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                ('blocks', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ('commit', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='points', to='benchmarks.commit')),
                ('series', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='points', to='results.series')),
            ],
        ),
        migrations.AddIndex(
            model_name='reading',
            index=models.Index(fields=['case', 'commit'], name='reading_by_case'),
        ),
        migrations.AddConstraint(
            model_name='reading',
            constraint=models.CheckConstraint(condition=models.Q(('validity__in', ['valid', 'suspect', 'invalid'])), name='reading_validity_known'),
        ),
        migrations.AddConstraint(
            model_name='series',
            constraint=models.UniqueConstraint(fields=('case', 'host', 'metric'), name='series_once'),
        ),
        migrations.AddIndex(
            model_name='point',
            index=models.Index(fields=['series', 'position'], include=('commit', 'at', 'epoch', 'shape', 'mean', 'mean_log', 'm2_log', 'n', 'suspect', 'invalid'), name='point_along_commits'),
        ),
        migrations.AddIndex(
            model_name='point',
            index=models.Index(fields=['commit', 'series'], name='point_by_commit'),
        ),
        migrations.RunSQL([READINGS, SERIES, NUMBER, POINTS], MEASUREMENTS),
        migrations.RunSQL(MOVE, DO_NOT_MOVE),
        migrations.RunSQL(INSERT_ONLY, "DROP TRIGGER insert_only ON results_reading;"),
        migrations.DeleteModel(
            name='Measurement',
        ),
    ]
