from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("forges", "0003_claims_of_pull_requests"),
    ]

    operations = [
        migrations.AddField(
            model_name="benchmarkrequest",
            name="fetches",
            field=models.PositiveSmallIntegerField(
                db_default=0, default=0, help_text="How often a fetch was requested for it."
            ),
        ),
    ]
