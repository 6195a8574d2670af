"""Django settings of the baseline in `bare_app.py`: those that `startproject` writes."""

from pathlib import Path

ROOT_URLCONF = "perf.harness.bare_app"
ALLOWED_HOSTS = ["127.0.0.1"]
SECRET_KEY = "bare"
USE_TZ = True
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
# Pitwall's web server reads this; nothing waits here.
FETCH_QUEUE = "bare"
ALLAUTH_TRUSTED_PROXY_COUNT = 0
STATIC_URL = "/static/"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).resolve().parents[2] / "templates"],
    }
]
WAITS_A_TOKEN = WAITS_A_TEAM = WAITS_A_PROCESS = 0
