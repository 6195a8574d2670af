"""Projects with their repositories, commits, and versioned benchmark definitions."""

from datetime import datetime
from typing import Any, Literal

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from orchestrator.accounts.models import Team, User
from orchestrator.core.ids import new_id
from orchestrator.transport.address import HostKey


class LiveManager(models.Manager[Any]):
    """Leaves out deleted rows, which can be restored for some days."""

    def get_queryset(self) -> models.QuerySet[Any]:
        return super().get_queryset().filter(deleted_at=None)


class CompleteManager(models.Manager[Any]):
    """Includes deleted rows."""


class Deletable(models.Model):
    """A deleted row can be restored during a grace period."""

    deleted_at = models.DateTimeField(null=True, blank=True)
    deleted_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    objects = LiveManager()
    with_deleted = CompleteManager()

    class Meta:
        abstract = True


class Project(Deletable):
    """A git repository of a team.

    Its benchmarks are deleted and restored with it, with the same `deleted_at`.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="projects")
    slug = models.SlugField(max_length=60)
    name = models.CharField(max_length=100)
    repository_url = models.CharField(max_length=500)
    default_branch = models.CharField(max_length=200, default="main")
    fetched_at = models.DateTimeField(null=True, blank=True)
    branches = models.JSONField(
        default=list, blank=True, help_text="[name, hash of the tip], newest tip first."
    )
    confirm_changes = models.BooleanField(
        default=True, help_text="Confirm suspected changes automatically."
    )
    bisect_changes = models.BooleanField(
        default=True, help_text="Search for the commit that caused a confirmed regression."
    )
    machine_minutes_a_day = models.PositiveIntegerField(
        default=60, help_text="Machine time for confirmation and bisection, all hosts."
    )
    public_since = models.DateTimeField(
        null=True, blank=True, help_text="Since when the project's results are public."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "slug"], condition=Q(deleted_at=None), name="project_slug_once"
            )
        ]

    def __str__(self) -> str:
        return self.name


class RepositoryAccess(models.Model):
    """The credential of a project's repository for git, and the host key of its SSH server.

    `sealed_private_key` belongs to `public_key`, a deploy key for SSH; `sealed_token` is for https,
    with `username`. `host_key` was pinned at `host_key_at`; an empty one was removed then by a
    maintainer. `offered_host_key` is a different key, which the server showed at `offered_at`:
    nothing is fetched until a maintainer accepts it or the server shows the pinned key again.
    """

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="access")
    public_key = models.TextField(blank=True)
    sealed_private_key = models.BinaryField(null=True, editable=False)
    username = models.CharField(max_length=100, blank=True)
    sealed_token = models.BinaryField(null=True, editable=False)
    host_key = models.TextField(blank=True)
    host_key_at = models.DateTimeField(null=True, blank=True)
    offered_host_key = models.TextField(blank=True)
    offered_at = models.DateTimeField(null=True, blank=True)
    changed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "repository access"

    def __str__(self) -> str:
        return f"access of {self.project}"

    @property
    def kind(self) -> Literal["deploy_key", "token", "none"]:
        """Return the kind of the credential."""
        if self.sealed_private_key is not None:
            return "deploy_key"
        return "none" if self.sealed_token is None else "token"

    @property
    def was_host_key_forgotten(self) -> bool:
        """Return whether a maintainer removed the pinned key: the next one needs confirmation."""
        return not self.host_key and self.host_key_at is not None

    @property
    def host_fingerprint(self) -> str:
        return HostKey.parse(self.host_key).fingerprint_sha256 if self.host_key else ""

    @property
    def offered_fingerprint(self) -> str:
        key = self.offered_host_key
        return HostKey.parse(key).fingerprint_sha256 if key else ""


class ProjectSecret(models.Model):
    """A secret that hosts get as an environment variable of measured code.

    `version` counts the values that it had. A deleted secret has no value. Its row stays, so that a
    later secret of this name has other versions.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=64)
    sealed_value = models.BinaryField(null=True, editable=False)
    version = models.PositiveIntegerField(default=0)
    changed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="project_secret_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.project}"


class Fetch(models.Model):
    """The fetches of a project's repository: the request, the running one, and the latest results.

    One row per project. It is due from `next_at` on; null: nothing is requested. A worker claims it
    by `claim` until `claimed_until`, and renews that while git runs. `refs` are requested in
    addition to branches and tags. `succeeded_at` and `failed_at` are the start times of the newest
    fetches with that result, which include all earlier pushes. All times are of the database's
    clock.
    """

    project = models.OneToOneField(
        Project, on_delete=models.CASCADE, primary_key=True, related_name="fetch"
    )
    requested_at = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField(null=True, blank=True)
    refs = models.JSONField(default=list, blank=True)
    claim = models.UUIDField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text="Since the last success.")
    error = models.TextField(blank=True)
    progress = models.CharField(max_length=200, blank=True)
    mirror_bytes = models.BigIntegerField(null=True, blank=True)
    clone = models.BooleanField(
        default=False, db_default=False, help_text="The next fetch replaces the mirror by a clone."
    )

    class Meta:
        indexes = [
            models.Index(fields=["next_at"], condition=Q(next_at__isnull=False), name="fetch_due")
        ]

    def __str__(self) -> str:
        return f"fetch of {self.project}"

    @property
    def state(self) -> str:
        """Return `running`, `queued`, `failed`, `done` or `never`."""
        if self.claim is not None:
            return "running"
        if self.next_at is not None and not self._has_ended_since_request():
            return "queued"
        if self.failures:
            return "failed"
        return "done" if self.succeeded_at else "never"

    @property
    def is_going_on(self) -> bool:
        return self.state in ("queued", "running")

    @property
    def is_requested_again(self) -> bool:
        """Return whether it was requested after its newest attempt started."""
        if self.requested_at is None or self.started_at is None:
            return False
        return self.requested_at > self.started_at

    def is_running_since(self, since: datetime) -> bool:
        """Return whether a worker runs it, and started after this time."""
        return self.claim is not None and self.started_at is not None and self.started_at >= since

    def has_succeeded_since(self, since: datetime) -> bool:
        """Return whether an attempt that started after this time succeeded."""
        return self.succeeded_at is not None and self.succeeded_at >= since

    def has_failed_since(self, since: datetime, tries: int) -> bool:
        """Return whether no attempt that started after this time succeeded, and waiting is useless.

        It is useless if no attempt is planned, or after `tries` failures in a row.
        """
        if self.failed_at is None or self.failed_at < since:
            return False
        return self.failures > 0 and (self.next_at is None or self.failures >= tries)

    def _has_ended_since_request(self) -> bool:
        if self.requested_at is None or self.started_at is None:
            return False
        return self.started_at >= self.requested_at


class Commit(models.Model):
    """A commit that was named in a run, or is between such commits.

    `position` counts along the topological order of the default branch, parents first; it is null
    for commits of other branches. `mainline`: it is on the branch's line of first parents, on which
    changes are detected.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="commits")
    sha = models.CharField(max_length=40)
    parents = models.JSONField(default=list)
    subject = models.CharField(max_length=300)
    author = models.CharField(max_length=200)
    committed_at = models.DateTimeField()
    position = models.PositiveIntegerField(null=True, blank=True)
    mainline = models.BooleanField(default=False)

    class Meta:
        indexes = [
            models.Index(
                "project",
                F("position").desc(nulls_last=True),
                F("committed_at").desc(),
                name="commit_newest",
            )
        ]
        constraints = [
            models.UniqueConstraint(fields=["project", "sha"], name="commit_once"),
            models.CheckConstraint(
                condition=Q(sha__regex=r"^[0-9a-f]{40}$"), name="commit_sha_is_full"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.short_sha} {self.subject}"

    @property
    def short_sha(self) -> str:
        return self.sha[:10]


class BuildSource(models.Model):
    """What a host needs to build a commit, in addition to the files of the commit.

    `submodules` are pairs of a path and a hash, parents first. `has_lfs_files`: the commit or a
    submodule has files of Git LFS. `problem`: why the files are not those to measure; empty if they
    are. `requested_at`: when a job asked for a fetch of them. `read_at`: when the other fields were
    determined; null before. Both times are of the database's clock.
    """

    commit = models.OneToOneField(
        Commit, on_delete=models.CASCADE, primary_key=True, related_name="source"
    )
    submodules = models.JSONField(default=list, blank=True)
    has_lfs_files = models.BooleanField(default=False, db_default=False)
    problem = models.TextField(blank=True)
    requested_at = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"source of {self.commit}"


class Benchmark(Deletable):
    """A named thing to measure in a project; its definitions are its versions.

    With `repository_path`, they are read from this file of the measured commit. A draft was tried
    and not saved: lists leave it out.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="benchmarks")
    slug = models.SlugField(max_length=60)
    title = models.CharField(max_length=200)
    repository_path = models.CharField(max_length=200, blank=True)
    is_draft = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "slug"], condition=Q(deleted_at=None), name="benchmark_once"
            )
        ]

    def __str__(self) -> str:
        return self.title


class Definition(models.Model):
    """One immutable version of a benchmark's specification.

    `commit` and `path` are its origin if it was read from the repository.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="definitions")
    version = models.PositiveIntegerField()
    source = models.TextField(help_text="YAML, as it was written.")
    spec = models.JSONField(help_text="The validated specification in canonical form.")
    axes = ArrayField(
        models.CharField(max_length=40),
        default=list,
        help_text="Axes of the matrix in order, which the JSON of `spec` does not keep.",
    )
    digest = models.CharField(max_length=64)
    commit = models.ForeignKey(
        Commit, on_delete=models.RESTRICT, null=True, blank=True, related_name="definitions"
    )
    path = models.CharField(max_length=200, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(
                fields=["benchmark", "version"], name="definition_version_once"
            ),
            models.CheckConstraint(
                condition=Q(commit__isnull=True, path="") | (Q(commit__isnull=False) & ~Q(path="")),
                name="definition_read_from_a_file_of_a_commit",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.benchmark.slug} v{self.version}"


class Case(models.Model):
    """One cell of a matrix, identified by the hash of its parameters, with a lasting history.

    `hidden_at`: since when the choices of pages leave it out. Its results stay.
    """

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="cases")
    key = models.CharField(max_length=16)
    parameters = models.JSONField()
    label = models.CharField(max_length=200)
    hidden_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["label"]
        constraints = [models.UniqueConstraint(fields=["benchmark", "key"], name="case_key_once")]

    def __str__(self) -> str:
        return self.label


class ShareLink(models.Model):
    """A secret link to one page of a project; only the SHA-256 of its secret is stored.

    `page` is the name of the URL of the page, `parameters` are in its path and `query` is its
    query.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="share_links")
    page = models.CharField(max_length=30)
    parameters = models.JSONField(default=dict)
    query = models.CharField(max_length=2000, blank=True)
    title = models.CharField(max_length=200)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.title} ({self.prefix}…)"
