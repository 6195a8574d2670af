from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("forges", "0002_fetches_of_requests"),
    ]

    operations = [
        migrations.AddField(
            model_name="pullrequest",
            name="claim",
            field=models.UUIDField(blank=True, null=True),
        ),
    ]
