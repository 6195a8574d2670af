"""A hostile visitor: sends bad values of every parameter to every address without a login.

No answer may have the status 500 or above, take longer than LONGEST_S, or contain data for members
or the name of a commit that was not measured. All requests together may change no row, and need at
most MOST_BYTES of memory. `make fuzz` runs it by `visitors_body.py`.
"""

import random
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

from django.db import connection
from django.test import Client

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.refs import open_repository
from tests.support.factories import commit_files, git
from tests.support.visitor_site import SECRET, OpenPage

#: No request may hold a thread for longer.
LONGEST_S = 10.0
#: The process may grow by at most this much over all requests.
MOST_BYTES = 600 * 2**20
#: Stop after this many failed requests.
MOST_FAULTS = 30
BRANCH = "unmeasured-branch"
HOSTILE: Sequence[str] = (
    "", " ", "0", "-1", "1e999", "nan", "inf", "9" * 400, "9223372036854775808", "1.5", "None",
    "\x00", "a\x00b", "\ud7ff", "\u202e", "é" * 300, "x" * 5000, "%", "%00", "\r\nX-Evil: 1", "'",
    '"><script>alert(1)</script>', "{{7*7}}", "${x}", "' OR 1=1 --", "../../../etc/passwd", "/",
    "//evil.example/", "https://evil.example/", "javascript:alert(1)", "file:///etc/passwd",
    "[" * 3000, "(" * 3000, "a.b.c.d", "__class__", "case.__class__", "x == 1 or " * 400 + "x",
    "0" * 40, "f" * 40, "0" * 7, "HEAD", "HEAD~1", "main", "main@{1}", BRANCH, "refs/heads/main",
    "--upload-pack=id", "-x", "newest", "latest", "*", "server/many", "blue/many", "server/",
    "00000000-0000-0000-0000-000000000000", "pw_" + "A" * 43, "requests.rate", "x" * 200,
    "0,50,99,100,101", ",".join(["99"] * 2000), "٣", "１２", "true", "json", "md", "csv", "xml",
    "connections == 1", "connections ==", "page in ['hello'] and connections < 1e400",
)  # fmt: skip


@dataclass(slots=True)
class VisitorTally:
    """`unmeasured`: texts that name commits without measurements.

    `pairs`: (parameter of a page, value). `changed`: tables whose rows have changed.
    """

    unmeasured: tuple[str, ...]
    requests: int = 0
    pages: int = 0
    parameters: int = 0
    pairs: int = 0
    grown_bytes: int = 0
    changed: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    slowest: str = ""
    statuses: dict[int, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def ask(self, client: Client, address: str) -> None:
        began = time.monotonic()
        answer = client.get(address)
        content = answer.getvalue().decode(errors="replace")
        seconds = time.monotonic() - began
        self.requests += 1
        self.statuses[answer.status_code] = self.statuses.get(answer.status_code, 0) + 1
        if seconds > self.slowest_s:
            self.slowest_s, self.slowest = seconds, address
        headers = "\n".join(f"{name}: {value}" for name, value in answer.items())
        for why in self._wrong(answer.status_code, f"{headers}\n{content}", seconds, address):
            self.faults.append(f"{why}: {address[:400]}")

    def _wrong(self, status: int, text: str, seconds: float, address: str) -> Iterator[str]:
        if status >= 500:
            yield f"status {status}"
        if seconds > LONGEST_S:
            yield f"{seconds:.1f} s"
        if SECRET in text or "Traceback" in text:
            yield "tells what is for members"
        if any(name in text and name not in address for name in self.unmeasured):
            yield "names a commit that was not measured"


def add_unmeasured_branch(folder: Path) -> tuple[str, ...]:
    """Add a commit without measurements to the project `server`; return the texts that name it."""
    repository = folder / "repository"
    git(repository, "checkout", "--quiet", "-b", BRANCH)
    tip = commit_files(repository, {"file.txt": "unmeasured\n"}, 9)
    git(repository, "checkout", "--quiet", "main")
    open_repository(Project.objects.get(slug="server")).fetch()
    return tip, tip[:10]


def list_pairs(site: Sequence[OpenPage]) -> list[tuple[OpenPage, str, str]]:
    return [
        (page, name, value) for page in site for name in sorted(page.reads) for value in HOSTILE
    ]


def addresses(site: Sequence[OpenPage], seed: int) -> Iterator[str]:
    """Yield endless addresses; first each parameter of each page with one value."""
    chance = random.Random(seed)
    pairs = list_pairs(site)
    chance.shuffle(pairs)
    turns, made = Counter[tuple[str, str]](), list[tuple[int, str]]()
    for page, name, value in pairs:
        turns[page.path, name] += 1
        made.append((turns[page.path, name], page.address(**{name: value})))
    for _, address in sorted(made, key=lambda each: each[0]):
        yield address
    while True:
        yield _mixed(chance, chance.choice(site))


def _mixed(chance: random.Random, page: OpenPage) -> str:
    """Return several parameters at once, some repeated, perhaps with a part of the path."""
    names = sorted(page.reads) or ["x"]
    query = [
        (chance.choice(names), chance.choice(HOSTILE))
        for _ in range(chance.choice((1, 2, 3, 5, 200)))
    ]
    usual = page.usual().items() if chance.random() < 0.5 else ()
    path = page.path
    if chance.random() < 0.3:
        parts = path.split("/")
        parts[chance.randrange(1, len(parts))] = quote(chance.choice(HOSTILE)[:300], safe="")
        path = "/".join(parts)
    return f"{path}?{urlencode([*usual, *query])}"[:7000]


def fuzz(
    site: Sequence[OpenPage], unmeasured: tuple[str, ...], requests: int, seed: int
) -> VisitorTally:
    """Return the result of `requests` requests; fewer if too many of them failed."""
    seen = VisitorTally(unmeasured=unmeasured, pages=len(site), pairs=len(list_pairs(site)))
    seen.parameters = sum(len(page.reads) for page in site)
    client = Client(raise_request_exception=False)
    before, memory = read_table_checksums(), _peak_bytes()
    for address in addresses(site, seed):
        seen.ask(client, address)
        if seen.requests >= requests or len(seen.faults) >= MOST_FAULTS:
            break
    seen.grown_bytes = _peak_bytes() - memory
    if seen.grown_bytes > MOST_BYTES:
        seen.faults.append(f"the process grew by {seen.grown_bytes} bytes")
    after = read_table_checksums()
    seen.changed = sorted(name for name in after if after[name] != before[name])
    seen.faults += [f"rows of {name} were changed" for name in seen.changed]
    return seen


def read_table_checksums() -> dict[str, tuple[int, int]]:
    """Return the row count and a checksum of each table.

    The time of the last use of a shared link is left out, since it is meant to change.
    """
    tables = {}
    with connection.cursor() as cursor:
        for name in connection.introspection.table_names(cursor):
            row = f"to_jsonb({connection.ops.quote_name(name)}) - 'last_used_at'"
            query = f"SELECT count(*), coalesce(sum(hashtext(({row})::text)), 0) FROM "
            cursor.execute(query + connection.ops.quote_name(name))
            tables[name] = cursor.fetchone()
    return tables


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def build_summary(seen: VisitorTally) -> dict[str, object]:
    return {
        "requests": seen.requests,
        "pages": seen.pages,
        "parameters": seen.parameters,
        "pairs": seen.pairs,
        "pairs_tried": min(seen.requests, seen.pairs),
        "statuses": dict(sorted(seen.statuses.items())),
        "slowest_s": round(seen.slowest_s, 2),
        "grown_mib": round(seen.grown_bytes / 2**20),
        "tables_changed": len(seen.changed),
        "findings": len(seen.faults),
    }
