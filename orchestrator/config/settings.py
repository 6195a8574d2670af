"""Pitwall's settings, all read from the environment; docs/configuration.md lists the variables."""

import gc
from pathlib import Path

from orchestrator.config import variables
from orchestrator.core.logs import FORMATS

# Nearly all objects of loaded code stay. To search them for garbage took a fifth of the time of
# loading. OperationsConfig.ready() enables it again.
gc.disable()

BASE_DIR = Path(__file__).resolve().parent.parent.parent

DEBUG = variables.read_flag("PITWALL_DEBUG")
# Management commands that serve nobody run without a secret key; wsgi.py and the vault refuse to.
SECRET_KEY_IS_GIVEN = bool(variables.read_text("PITWALL_SECRET_KEY"))
SECRET_KEY = variables.read_text("PITWALL_SECRET_KEY", "given-to-nobody-" + "0" * 40)
# Older secrets still verify signatures and open sealed values.
SECRET_KEY_FALLBACKS = variables.read_words("PITWALL_SECRET_KEY_FALLBACKS")
# Keys for secrets at rest, the newest first. By default, the key is derived from
# PITWALL_SECRET_KEY.
SEALING_KEYS = variables.read_named_keys("PITWALL_SEALING_KEYS")
DATA_DIR = variables.read_path("PITWALL_DATA_DIR", BASE_DIR / ".pitwall" / "data")
BASE_URL = variables.read_text("PITWALL_BASE_URL", "http://127.0.0.1:8000").rstrip("/")
ALLOWED_HOSTS = variables.read_words("PITWALL_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
# Pages that may embed charts of public projects, as in a CSP's frame-ancestors.
EMBED_ANCESTORS = variables.read_words("PITWALL_EMBED_ANCESTORS", "*")
# Default quotas of a team (`manage.py quota` changes those of one team); None: no limit.
QUOTAS = {
    "hosts": variables.read_limit("PITWALL_QUOTA_HOSTS", 50),
    "queued_minutes": variables.read_limit("PITWALL_QUOTA_QUEUED_MINUTES", 20_160),
    "storage_mib": variables.read_limit("PITWALL_QUOTA_STORAGE_MIB", 51_200),
    "mirrors_mib": variables.read_limit("PITWALL_QUOTA_MIRRORS_MIB", 51_200),
}
# The most external hosts, and the most hardware profiles, that a team may have.
MAX_EXTERNAL_HOSTS = variables.read_number("PITWALL_MAX_EXTERNAL_HOSTS", 200)
MAX_PROFILES = variables.read_number("PITWALL_MAX_PROFILES", 200)
# The most trials of a run: hosts times cases times commits times rounds.
MAX_TRIALS = variables.read_number("PITWALL_MAX_TRIALS", 20_000)
# Trials of a round wait for this time in all while other processes use a host.
QUIET_WAIT_S = variables.read_number("PITWALL_QUIET_WAIT_S", 60)
# The most custom metrics (script.upload_s) of a team, for all its projects together.
MAX_CUSTOM_METRICS = variables.read_number("PITWALL_MAX_CUSTOM_METRICS", 500)
HTTPS = BASE_URL.startswith("https://")

# Requests per minute of one API token; 0: no limit.
API_REQUESTS_A_MINUTE = variables.read_number("PITWALL_API_REQUESTS_A_MINUTE", 30_000)

# The same for pages: of one user, and of one address without a login.
SESSION_REQUESTS_A_MINUTE = variables.read_number("PITWALL_SESSION_REQUESTS_A_MINUTE", 1_200)
VISITOR_REQUESTS_A_MINUTE = variables.read_number("PITWALL_VISITOR_REQUESTS_A_MINUTE", 600)
# API requests with `?wait=` that may wait at once, in each web process.
WAITS_A_TOKEN = variables.read_number("PITWALL_WAITS_A_TOKEN", 100)
WAITS_A_TEAM = variables.read_number("PITWALL_WAITS_A_TEAM", 400)
WAITS_A_PROCESS = variables.read_number("PITWALL_WAITS_A_PROCESS", 1_000)

# The load tools that are sent to hosts of the same platform; empty: each host uses its own.
LOAD_TOOLS = {
    "oha": variables.read_text("PITWALL_OHA"),
    "ghz": variables.read_text("PITWALL_GHZ"),
    "k6": variables.read_text("PITWALL_K6"),
    "wrk": variables.read_text("PITWALL_WRK"),
    "h2load": variables.read_text("PITWALL_H2LOAD"),
}
# Repositories given as a path of this machine: for the demo and for tests, not for a shared server.
ALLOW_LOCAL_REPOSITORIES = variables.read_flag("PITWALL_ALLOW_LOCAL_REPOSITORIES")
# Whether members may measure the machine of the workers: for a developer's own machine.
ALLOW_LOCAL_HOST = variables.read_flag("PITWALL_ALLOW_LOCAL_HOST")

# Our networks (10.1.0.0/16) that webhooks and forges may use; other internal networks are refused.
ALLOWED_INTERNAL_NETWORKS = variables.read_words("PITWALL_ALLOWED_INTERNAL_NETWORKS")

# Networks that hosts may be in; by default all but this machine and link-local addresses.
HOST_NETWORKS = variables.read_words("PITWALL_HOST_NETWORKS")

# Where the packets go that wake hosts (Wake-on-LAN): a broadcast address and its port.
WAKE_ADDRESS = variables.read_text("PITWALL_WAKE_ADDRESS", "255.255.255.255:9")
# Whether a machine can be only one host of a team, and only one job at a time measures on it.
ONE_HOST_PER_MACHINE = variables.read_flag("PITWALL_ONE_HOST_PER_MACHINE", default=True)

# Limits of a fetch: its time, and the disk space of one mirror.
GIT_FETCH_TIMEOUT_S = variables.read_number("PITWALL_GIT_FETCH_TIMEOUT_S", 3600)
# An HTTP proxy that git uses for http and https; the proxy must refuse internal addresses itself.
GIT_PROXY = variables.read_proxy_url("PITWALL_GIT_PROXY")
GIT_MIRROR_LIMIT_MIB = variables.read_number("PITWALL_GIT_MIRROR_LIMIT_MIB", 20_480)
# With less free space on the disk of the data folder, git writes nothing to it.
MIN_FREE_DISK_MIB = variables.read_number("PITWALL_MIN_FREE_DISK_MIB", 1024)
# The largest transfer to a host: a commit's unpacked files, or a bundle of its history.
GIT_PACKED_LIMIT_MIB = variables.read_number("PITWALL_GIT_PACKED_LIMIT_MIB", 8192)

# The mail server of channels and invitations. Without one there is no channel by e-mail, and
# invitations are links to copy.
EMAIL_HOST = variables.read_text("PITWALL_SMTP_HOST")
EMAIL_PORT = int(variables.read_text("PITWALL_SMTP_PORT", "587"))
EMAIL_HOST_USER = variables.read_text("PITWALL_SMTP_USER")
EMAIL_HOST_PASSWORD = variables.read_text("PITWALL_SMTP_PASSWORD")
EMAIL_USE_TLS = variables.read_flag("PITWALL_SMTP_TLS", default=True)
EMAIL_TIMEOUT = 10
# The mails of one team to each address of a channel and of an invitation.
EMAILS_AN_HOUR = variables.read_number("PITWALL_EMAILS_AN_HOUR", 200)
DEFAULT_FROM_EMAIL = variables.read_text("PITWALL_MAIL_FROM", "pitwall@localhost")

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    # "allauth" itself is left out, since its pages are not ours: a missing template is an error.
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "template_partials",
    "orchestrator.accounts",
    "orchestrator.fleet",
    "orchestrator.benchmarks",
    "orchestrator.runs",
    "orchestrator.results",
    "orchestrator.measurements",
    "orchestrator.comparisons",
    "orchestrator.histories",
    "orchestrator.regressions",
    "orchestrator.reports",
    "orchestrator.retention",
    "orchestrator.calibration",
    "orchestrator.alerts",
    "orchestrator.forges",
    "orchestrator.dispatch",
    "orchestrator.operations",
    "orchestrator.archives",
    "orchestrator.api",
    "orchestrator.web",
]

MIDDLEWARE = [
    "orchestrator.operations.probes.probes",
    "orchestrator.operations.requests.watched",
    "orchestrator.web.middleware.require_scheme",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # Pages are compressed; docs/decisions/0027-compressed-pages.md says why that is safe here.
    "django.middleware.gzip.GZipMiddleware",
    "orchestrator.web.middleware.content_security_policy",
    "orchestrator.web.visitors.visiting",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "orchestrator.web.rate_limits.limited_pages",
    "orchestrator.api.middleware.limited_visitors",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "orchestrator.operations.fetch_waits.fetch_waits",
    "orchestrator.web.errors.translate_errors",
    "orchestrator.api.middleware.problems",
    "orchestrator.api.middleware.answer_head",
    "orchestrator.web.middleware.RefuseNulBytes",
    # Forms are read behind all of these, including the check of the CSRF token.
    "orchestrator.web.middleware.bounded_bodies",
]

ROOT_URLCONF = "orchestrator.config.urls"
WSGI_APPLICATION = "orchestrator.config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "orchestrator.web.context.navigation",
            ],
        },
    },
]

DATABASES = {
    "default": variables.parse_database_url(
        variables.read_text("DATABASE_URL", "postgresql://pitwall@localhost:5432/pitwall")
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["orchestrator.accounts.backends.OneQueryBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# A password with another hasher is hashed again with the first one when its owner logs in.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]

# The second factor and sign-in by OpenID Connect use django-allauth
# (docs/decisions/0030-sign-in.md).
ACCOUNT_ADAPTER = "orchestrator.accounts.sign_in.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = {"login_failed": "30/m/ip,10/5m/key"}
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
MFA_ADAPTER = "orchestrator.accounts.sign_in.SecondFactorAdapter"
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_ISSUER = "Pitwall"
SOCIALACCOUNT_ADAPTER = "orchestrator.accounts.oidc.SignInElsewhere"
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
ALLAUTH_TRUSTED_PROXY_COUNT = variables.read_number("PITWALL_TRUSTED_PROXIES")
OIDC_SERVER_URL = variables.read_server_url("PITWALL_OIDC_SERVER_URL")
OIDC_NAME = variables.read_text("PITWALL_OIDC_NAME", "OpenID Connect")
OIDC_CLIENT_ID = variables.read_text("PITWALL_OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = variables.read_text("PITWALL_OIDC_CLIENT_SECRET")
OIDC_LINK_BY_EMAIL = variables.read_flag("PITWALL_OIDC_LINK_BY_EMAIL", default=True)
OIDC_NEW_ACCOUNTS = variables.read_flag("PITWALL_OIDC_NEW_ACCOUNTS")
# Failed logins and used codes are counted for all web processes together.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "accounts_shared_cache",
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    }
}

LANGUAGE_CODE = "en-gb"
# There is one language. The look-up of translations would cost a tenth of each link's address.
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = variables.read_path("PITWALL_STATIC_ROOT", BASE_DIR / "staticfiles")
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if not DEBUG
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# The grid of a form sends one field per cell: a definition has at most 5,000 cases.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 6_000

SESSION_ENGINE = "orchestrator.accounts.sessions"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
CSRF_TRUSTED_ORIGINS = [BASE_URL]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
# Our proxy reports the scheme of the request. Redirect http to https only behind such a proxy.
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if ALLAUTH_TRUSTED_PROXY_COUNT else None
)
SECURE_SSL_REDIRECT = HTTPS and ALLAUTH_TRUSTED_PROXY_COUNT > 0
# Probes ask a process directly, without the proxy.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|livez|readyz|health|live|ready|metrics)\b"]
# Only the owner of the domain knows whether all subdomains are served over https permanently.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# PostgreSQL holds all state; a lost or repeated message costs at most one tick.
CELERY_BROKER_URL = variables.read_text("REDIS_URL", "redis://127.0.0.1:6379/0")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
# Acknowledge a message when it is received, for the same reason as in celery.py: with late
# acknowledgement the worker exits if Redis went away during the task.
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_CREATE_MISSING_QUEUES = True
CELERY_TASK_DEFAULT_QUEUE = variables.read_text("PITWALL_QUEUE", "pitwall")
# Whatever may take long has a separate worker, so that it delays no step of a job. Fetches have a
# queue of their own in it: other background work does not wait behind them (docs/decisions/0082).
BACKGROUND_QUEUE = f"{CELERY_TASK_DEFAULT_QUEUE}-background"
FETCH_QUEUE = f"{CELERY_TASK_DEFAULT_QUEUE}-fetches"
LONG_QUEUES = (BACKGROUND_QUEUE, FETCH_QUEUE)
CELERY_TASK_ROUTES = [
    {
        "orchestrator.dispatch.background_tasks.fetch_repositories": {"queue": FETCH_QUEUE},
        "orchestrator.dispatch.background_tasks.*": {"queue": BACKGROUND_QUEUE},
    }
]
BACKGROUND_SLOTS = variables.read_number("PITWALL_BACKGROUND_SLOTS", 8)
FETCH_SLOTS = variables.read_number("PITWALL_FETCH_SLOTS", 8)
BACKGROUND_THREADS = BACKGROUND_SLOTS + FETCH_SLOTS
FETCHES_A_TEAM = variables.read_number("PITWALL_FETCHES_A_TEAM", 2)
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# The work is waiting for hosts: threads share the open connections (docs/decisions/0011).
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = 16
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 10.0
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 120,
    "unacked_restore_interval": 30,
    "unacked_restore_throttle": 1,
}
CELERY_TIMEZONE = "UTC"
# Any number of beats may run, and none needs a schedule file.
CELERY_BEAT_SCHEDULER = "orchestrator.operations.leader_scheduler.LeaderScheduler"

# The token to read /metrics; by default only this machine may read it.
METRICS_TOKEN = variables.read_text("PITWALL_METRICS_TOKEN")
TRACES = variables.read_flag("PITWALL_TRACES")
LOG_FORMAT = variables.read_choice("PITWALL_LOG_FORMAT", tuple(FORMATS))

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"chosen": FORMATS[LOG_FORMAT]},
    "filters": {"outages": {"()": "orchestrator.operations.outages.OutageFilter"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "chosen",
            "filters": ["outages"],
        }
    },
    "root": {"handlers": ["stderr"], "level": variables.read_text("PITWALL_LOG_LEVEL", "INFO")},
    "loggers": {
        # Two lines per message of each tick would hide everything else.
        **{
            name: {"level": "WARNING"}
            for name in (
                "paramiko",
                "celery.worker.strategy",
                "celery.app.trace",
                # One line for each tick that expired while Redis was away.
                "celery.worker.request",
            )
        },
        # Django's own handlers are removed: their formatters do not redact secrets in addresses.
        "django": {"handlers": []},
    },
}
