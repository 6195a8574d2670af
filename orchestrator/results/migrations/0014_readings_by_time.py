"""Old readings are found without a look at all of them."""

import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("results", "0013_packed_already")]

    operations = [
        migrations.AddIndex(
            model_name="reading",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["at"], name="reading_by_time"
            ),
        ),
    ]
