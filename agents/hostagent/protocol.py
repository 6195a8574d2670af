"""What the orchestrator and the agent say to each other: files, verbs, exit codes.

Layout below the host's work directory (all paths relative to it, all names are ids or hashes):

    agents/<hash>.pyz                     the agent, a zip application named by the hash of its files
    tools/<sha256>/oha                    a load tool that the orchestrator sent
    repositories/<project id>.git         bare repository, filled from bundles
    bundles/<name>.bundle                 a git bundle on its way in; removed once it was taken in
    sources/<commit>.tar.gz               `git archive` of a commit, for hosts without git
    builds/<commit>-<inputs hash>/tree/   the checked-out and built commit; `.done` beside it = complete,
                                          with the name of the user of its own that made it, if any;
                                          `build.log` beside it = what the build wrote, `home` = that user's home,
                                          `installed` beside it = the name of its folder below installs/
    installs/<name>/installed/            what the recipe of a build installs (builds/installs.py); `.done` beside it
                                          = complete, `install.log` beside it = what the steps wrote; <name> is
                                          a hash of the recipe's key and of the contents of its files
    programs.json                         versions of the host's programs, kept for a day (platform/programs.py)
    scratch/                              what measured code writes beside its tree, where it runs as a user of its
                                          own; new for each build and trial, gone after the step (sandbox/directories.py)
    tuning.json                           what host tuning changed and has not undone yet (platform/linux/tuning.py)
    host.lock                             held by the one supervisor that may work below this directory
    jobs/<job id>/tls/                    the job's certificates, removed with it
    jobs/<job id>/<step id>/              one step (a round of a job); step id = "a<attempt>-r<round>"
        plan.json                         Plan, written by the orchestrator before `start`
        journal.jsonl                     events, appended by the supervisor, one JSON object a line
        supervisor.pid, supervisor.log
        contact                           touched by every `status`: the orchestrator still cares
        dropped.json                      ids of trials that nobody wants any more, written by the orchestrator
                                          while the step goes on: they are left out, and ended where one is on
        trials/<trial id>/                everything one trial left behind (see TRIAL_FILES)

Verbs: `python3 agents/<hash>.pyz --root <work dir> VERB [ARGS]`; each prints one JSON object on
stdout and exits 0, or `{"error": {"code": ..., "message": ...}}` and exits 1. Each verb first undoes
tuning that a supervisor which is no more left behind.

    facts                           {"facts": {...}}: what the host says of itself (platform/facts.py)
    quiet                           {"quiet": {...}}: AMBIENT_DURING of two seconds in which nothing of ours
                                    works (monitoring/environment.py); temperatures and others' CPU time among it
    ready --keep-days N --limit-bytes B [--project ID --commits SHA...] [--paths PATH...]
          [--programs NAME...]      what a new job begins with, in one call: stop-all, prune (at most each
                                    10 min), facts, commits, has: {"stopped": [...], "facts": {...},
                                    "commits": {sha: bool}, "present": {path: bool}}; facts tell of the
                                    programs named beside those that are always looked for
    user NAME                       {"user": {"name": ..., "uid": n, "gid": n}} where measured code can run as this
                                    user; else an error that says what is in the way, and what to do (sandbox/user.py)
    start JOB STEP                  leaves a detached supervisor behind: {"pid": 123}; starting a step
                                    that was started before changes nothing: {"pid":…, "already": true};
                                    {"error": {"code": "busy"}} where another step holds host.lock
    status JOB STEP --offset N      {"alive": bool, "offset": M, "events": [...], "started": bool,
                                    "now": unix seconds by the host's clock, "dropped": ids in dropped.json}
                                    events appended at or after byte N; partial last line is left for later;
                                    "started" is false where no supervisor ever ran for this step
    log JOB STEP BUILD --offset N   {"offset": M, "text": "..."}: the log of the build of this id in that
                                    step from byte N, at most 64 KiB, UTF-8 with replacement
    stop JOB STEP                   ends the supervisor and all that it started: {"stopped": bool}
    stop-all                        the same for every supervisor below the work directory, living or
                                    killed, that left anything behind: {"stopped": ["job/step", ...]}
    prune --keep-days N --limit-bytes B
                                    removes what was not used for N days, then what was used longest ago
                                    until at most B bytes are left: {"removed": [...], "bytes": left}
    has PATH...                     {"present": {path: bool}} for files below the work directory
    commits PROJECT SHA...          {"git": bool, "present": {sha: bool}} in repositories/<PROJECT>.git;
                                    "git" is false where the host has no git
    take-bundle PROJECT NAME        fetches refs/pitwall/* from bundles/<NAME>.bundle and removes the file

Plan (plan.json), the same for every host of the job but for `self`, `tuning`, `run_as` and `tls`:

    {"schema": 4, "job": "...", "step": "a1-r1",
     "silence_s": 600,                     stop everything when `keepalive` is older than this
     "self": "a", "lead": "a",             labels of hosts; the lead's supervisor works through the trials
     "secret": "<64 hex digits>" | null,   the job's own; needed where there are several hosts
     "hosts": {"a": {"address": "10.9.0.1", "port": null},
               "b": {"address": "10.9.0.2", "port": 40123 | null}},
                                           `port`: where a follower listens (its own event `listening` told
                                           it); null for the lead, and in a follower's own plan
     "run_as": "bench" | null,             the user that measured code runs as on this host, null = the agent's
                                           login; `start` refuses where it cannot be
     "tuning": {"governor": "performance"},  what to set on this host for this step, undone after (platform/linux/tuning.py)
     "tls": {"ca": PEM, "cert": PEM, "key": PEM} | null,   the job's throw-away certificates, written to
                                           jobs/<job>/tls/{ca,cert,key}.pem, the key for its owner only;
                                           "cert" and "key" are null for hosts that run no server
     "builds": [{"id": "<sha>-<inputs hash>",              names a commit and a recipe; no two on one host
                 "label": "system axum",                   what people call the recipe; told again
                 "commit": "<sha>",
                 "source": {"archive": "sources/<sha>.tar.gz"} | {"repository": "<project id>"},
                 "tree": "builds/<…>", "on": ["a"],        labels of the hosts that need it
                 "path": ["/usr/local/go/bin"],            folders that come first on PATH
                 "install": INSTALL | null,
                 "steps": [["{python}", "-m", "compileall", "."]], "env": {}, "timeout_s": 600}],
     "trials": [{"id": "...", "tree": "builds/<…>", "commit": "<sha>",
                 "path": {"a": ["/usr/local/go/bin"]},     the same for all that the trial starts, by host
                 "server": {"on": "a", "argv": ["{python}", "server.py", "--port", "{port}"], "env": {},
                            "limits": LIMITS, "port": 8080 | null},        null = kernel chooses
                 "ready": {"path": "/hello" | null, "status": 200, "body": "Hello, World!" | null,
                           "timeout_s": 10,
                           "protocol": "h1" | "h2" | "grpc", "tls": bool},
                                           how the server is spoken to until it is ready; path null = a
                                           connection is enough (with tls: a handshake)
                 "checks": [CHECK, …],     asked before the first and after the last load; the first is
                                           the load's own request
                 "services": [{"name": "redis", "on": "b", "count": 1, "argv": ["redis-server", "--port",
                               "{port}", "--bind", "{bind}"], "env": {}, "limits": LIMITS,
                               "port": null | 6379,        with count 1 only
                               "ready": {"path": null | "/status", "status": 200, "timeout_s": 10}}],
                                           path null = a TCP connection is enough
                 "loads": [LOAD, …],       in order; one "measure" or, where the load is stepped, several
                 "search": SEARCH | null,  then `loads` is what each probe does, with one "measure"
                 "files": {"load.lua": "…"},   written into {trial_dir} before anything starts
                 "tool": {"name": "oha", "path": "tools/<sha256>/oha" | "/abs/path", "limits": LIMITS,
                          "reader": "oha",             who reduces what the tool left (readers/registry.py)
                          "cpus": 2},                  how many threads it was told to use
                 "cooldown_s": 0.2, "expected_s": 5.0}]}   the loads' own time, as far as it is known

INSTALL: {"key": "…", "files": ["requirements.txt"],     of the tree; their contents belong to the recipe
          "steps": [["python3.11", "-m", "venv", "{installed}"]], "timeout_s": 1800}
  Done before the build's own steps, in the tree and with its env, unless a folder of the same key and contents
  is there and complete. What the steps wrote is in the build's log. A failed step is a failed build.

LOAD: {"argv": ["{tool}", "...", "http://{address}:{port}/hello"], "env": {},
       "kind": "primer" | "warmup" | "measure", "wall_limit_s": 30.0,
       "warmup_s": 1.0}        rows of a measured load that start before this are its warm-up, kept apart

CHECK: {"name": "load", "method": "GET", "path": "/hello", "headers": [["accept", "*/*"]],
        "body": base64 | null, "protocol": "h1" | "h2" | "h3" | "grpc", "tls": bool, "timeout_s": 10,
        "argv": ["{tool}", …] | null,      h3 only: the load tool's way of asking once
        "status": 200 | null,
        "response_headers": {"content-type": "text/plain"},       each equal, names in lower case
        "response": {"text": "…"} | {"length": n} | {"sha256": "…"} | {"matches": "regex"} | null,
        "encoding": "gzip" | "identity" | null, "grpc_status": 0 | null}
  h2 without tls is prior knowledge. What is null is told but not judged. `response` is of the bytes as they
  came, before any content coding is undone, but for "text" and "matches", which are of the decoded body
  (identity, gzip, deflate). With h3 the load tool itself asks (`argv`), and only
  status and length are judged. The protocol that came is always judged: it must be the one asked for.

SEARCH: {"objective": [{"metric": "latency.p99" | "latency.mean" | "latency.max" | "success" | "delivered",
                        "op": "<" | "<=" | ">" | ">=", "value": 0.05}, …],  seconds, shares; all must hold
         "low": 100.0, "high": 100000.0,    requests a second; the first probe is at low
         "duration_s": 5.0,                 of a probe's window: delivered = good / (rate × duration_s)
         "max_probes": 24, "confirmations": 5}
  trials/capacity.py decides the next rate; it stands as {probe_rate} in the argv of each load. The server starts anew
  for each probe. latency.p<percent> is by nearest rank; success = good / (good + other + errors, as far as
  rows or report tell of those). A probe that fails for another reason than its load fails the trial, and so does
  a search in which no probe came to its end.

The processes of a service are its parts "service:<name>:<n>", n from 1.

LIMITS (platform/limits.py): {"cpus": [0] | null, "cpu_quota": 0.5 | null (CPUs), "memory_bytes": n | null,
"open_files": n | null}. The load tool always runs on the lead.

Measured code is what comes from a definition or a repository: steps of install and build, servers, services,
and a script in place of a load tool. With "run_as" it runs as that user, load tools as the agent's login. Its
{trial_dir}, TMPDIR and HOME are then not the trial's folder and the login's home (sandbox/directories.py), and {ca}, {cert}
and {key} are copies that it may read.

Words that are replaced inside each argument and environment value, never through a shell:
{python} {port} {tool} {out} {rows} {trial_dir} {tree} {installed} {probe_rate}; {ca}, {cert} and {key} are the job's PEM files;
{bind} is the address that a server of this host has to listen on and {address} the one where the lead finds
the server under test (both 127.0.0.1 where the plan has one host; {address} has brackets where it is IPv6);
for each service NAME {NAME_host}, {NAME_port} (of its first process) and {NAME_addresses}
("host:port,host:port,…", as the server's host reaches them).
{out} is where the tool's report goes and {rows} where its rows go, anew for each load; what the tool itself
writes to stdout lies beside {out} ({trial_dir}/tool.stdout, of the second load tool-2.stdout). Loads know all
words; server and services know {python} {port} {bind} {trial_dir} {tree} {installed} {ca} {cert} {key} and those
of services; install and build know {python} {tree} {installed}. {installed} is left as it is where nothing is.

A trial: every host looked at, its folder made anew with `files`; services in their order, each ready before
the next; the server, ready as the lead sees it; checks; the loads in their order; the checks again; everything
stopped; what the tool left reduced. All its processes start anew for each trial, and for each probe of a search.
Primers and warm-ups leave nothing behind. A check with a problem fails the trial: "wrong_protocol" where
another protocol came than was asked for, else "wrong_answer". An h3 check that the tool asks has to end within
its timeout_s and 10 s.

Events (journal.jsonl), each with "t" (unix seconds, float) and "event":

    supervisor_started {pid}
    tuned {applied: {knob: value}, refused: {knob: why}} · untuned {}
    build_started {build, commit, label} · build_failed {build, commit, message, output}
    build_done {build, commit, cached, seconds, installed}   installed: the name of its folder, or null
    listening {port}                           a follower is ready for its lead (hosts/secure_channel.py)
    trial_started {trial} · phase {trial, phase, quiet_s}   nobody asks again for quiet_s seconds
    trial_done {trial}                         its files are complete
    trial_failed {trial, code, message, output}   code: see FAILURES; output = tail of the server's output
    trial_dropped {trial}                      it was in dropped.json before it began
    round_done {}                              the supervisor ends after it
    aborted {reason, code}                     code: "stopped" | "silence" | "peer_lost" | "internal"

A failed build or a server that does not start fails the trials that need it; the rest goes on. A lost
peer ends the step on all its hosts.

TRIAL_FILES (on the lead): result.json (below), tool.stderr, server.log (tail, 64 KiB), and for each measured
load tool.json (its report as the reader left it) and rows.json (reduced rows, below); of the k-th, from the
second on, tool-k.json and rows-k.json.

result.json: {"schema": 4, "trial": "...", "tree": "builds/<…>", "tool": {"name","version","sha256"}, "tool_cpus": n,
  "started_at": unix, "ended_at": unix, "wall_s": ..., "port": 12345,
  "port_checked": bool (the kernel said that the server itself listens there; false where it does not tell),
  "server_argv": [...], "server_exit": null | code (it died before we stopped it),
  "checks": [CHECKED, …], "loads": [LOADED, …],
  "search": {"capacity": r|null, "low": r|null, "high": r|null, "stopped": "converged" | "at the limit" |
             "below the start" | "budget",
             "probes": [{"load": n, "rate": r, "passed": bool, "why": "latency.p99 …"}]} | null,
                          `load` counts "loads" from 0, null where nothing was kept: the server ended or
                          answered wrongly afterwards, or the tool had to be interrupted (not passed);
                          low and high bound 90 % of what is believed; "checks" and "limits" are those
                          of the last probe that is kept
  "limits": {"server": APPLIED, "tool": APPLIED, "service:<name>:<n>": APPLIED},   read back (platform/limits.py)
  "on": {"server": "b", "tool": "a"},          labels of the plan's hosts
  "hosts": {"a": AMBIENT_BEFORE, …},           each host as it was before anything of the trial started
  "load_before": load1|null (with several hosts the higher one of the server's and the lead's)}

CHECKED: {"name": "load", "when": "before" | "after", "problem": null | "status 500 instead of 200",
          "protocol": "h1"|…|null, "status": 200|null, "length": n|null, "sha256": "…"|null,
          "encoding": "gzip"|"identity"|null}

LOADED: {"argv": [...], "rc": 0, "signal": null, "rate": r|null (of a probe),
  "load_started_at": unix, "load_ended_at": unix, "hung": bool (wall limit reached, tool interrupted),
  "usage": {"server_cpu_s": x|null, "tool_cpu_s": x|null, "services_cpu_s": x|null,
            "server_peak_rss_bytes": n|null, "tool_peak_rss_bytes": n|null,
            "server_voluntary_switches": n|null, "server_involuntary_switches": n|null,
            "server_read_bytes": n|null, "server_written_bytes": n|null,
            "steal_s": x|null, "sampler_cpu_s": x|null, "reasons": {key: why null}},
  "samples": [{"t": s since load start, "server_cpu_s":…, "server_rss_bytes":…, "tool_cpu_s":…,
               "server_switches":…, "server_io_bytes":…, "temperature_c":…, "clock_mhz":…,
               "connections": open TCP connections to the server|null}],
               of the server's host, but for tool_cpu_s; with several hosts t is its own clock's
  "ambient": {"a": AMBIENT_DURING, …},         each host while the load ran
  "peer_gap_s": longest wait for a peer's answer during the load | null with one host}

AMBIENT_BEFORE and AMBIENT_DURING: see monitoring/environment.py; a fact that cannot be read is null, and why is in its
"reasons".

APPLIED: {"mechanism": "cgroup2" | "cgroup1" | "job" (Windows) | "affinity" (none of them),
  "cpus": [..]|null, "cpu_quota": x|null, "memory_bytes": n|null, "open_files": n|null,
  "file_bytes": n|null (of one file), "processes": n|null (and threads), "user": name|null (its own, not ours),
  "refused": {limit: why it does not hold, or not as asked},
  "throttled": periods of 100 ms in which the quota was used up,      only with a quota that holds
  "oom_kills": processes that the memory limit ended,                 only with one that holds
  "refused_forks": how often the control group was refused another process}   only where it has such a limit

rows.json: {"schema": 4,
  "all": {"n": rows of the whole load, "percentiles": {"p10": s, …}},  as the tool defines them, so that
                                            its own figures can be compared bit for bit; {} without any
  "window": {"start_s": warmup_s, "end_s": last end of a counted row | null},
  "ok":    {"value_us": [...], "count": [...]},      distinct latencies, ascending, answered well, after warm-up
  "other": {"value_us": [...], "count": [...]},      answered with any other status
  "by_status": {"200": n} (of the window) | null, "bytes": n | null (body bytes of the window),
  "length": {"min": n, "max": n} | null,            body bytes of the good answers of the window
  "warmup": {"n": rows that start before the window, "slices": [SLICE…]},
  "slices": [SLICE…],                                of the window; [] where the tool gives no times
  "errors": {class: n} | null, "error_texts": {class: [text…]},     null: only the tool's report can tell
  "protocol": "h1" | … | null,                       that the tool says it spoke
  "corrected": bool,                                 latencies count from when the request was due
  "told": {key: number}}                             figures of the reader's own, such as a script's readings

SLICE: {"t": 0, "answered": n, "ok": n, "bytes": n, "p50_us":…, "p90_us":…, "p99_us":…, "max_us":…}: a second
wide, by end time, t counted from the start of the window (warm-up: below 0, but for what began in it and ended
in the window). A second in which nothing ended has none. null is unknown, here too.
"""

SCHEMA = 4

#: Codes of `trial_failed`: what went wrong with one trial.
FAILURES = (
    "build_failed",
    "server_did_not_start",
    "server_not_ready",
    "wrong_answer",
    "wrong_protocol",
    "server_died",
    "port_in_use",
    "service_not_ready",
    "service_died",
    "tool_missing",
    "tool_failed",
    "output_lost",
    "internal",
    "cancelled",
)

#: Of these, the host is to blame and not what was measured: the trial may be tried again.
INFRASTRUCTURE_FAILURES = ("output_lost", "internal")

#: Rows kept of a trial; a plan that would exceed it is refused.
MAX_ROWS = 5_000_000

TRIAL_FILES = ("result.json", "tool.json", "tool.stderr", "rows.json", "server.log")


def load_files(n: int) -> tuple[str, str]:
    """Names of the report and the reduced rows of the n-th measured load, n from 0."""
    return ("tool.json", "rows.json") if n == 0 else (f"tool-{n + 1}.json", f"rows-{n + 1}.json")
