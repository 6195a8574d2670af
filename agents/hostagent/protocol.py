"""What the orchestrator and the agent say to each other: files, verbs, exit codes.

Layout below the host's work directory (all paths relative to it, all names are ids or hashes):

    agents/<hash>.pyz                     the agent, a zip application named by the hash of its files
    tools/<sha256>/oha                    a load tool that the orchestrator sent
    repositories/<project id>.git         bare repository, filled from bundles
    bundles/<name>.bundle                 a git bundle on its way in; removed once it was taken in
    sources/<commit>.tar.gz               `git archive` of a commit, for hosts without git
    builds/<commit>-<inputs hash>/tree/   the checked-out and built commit; `.done` beside it = complete,
                                          `build.log` beside it = what the build wrote
    programs.json                         versions of the host's programs, kept for a day (programs.py)
    tuning.json                           what host tuning changed and has not undone yet (tuning.py)
    host.lock                             held by the one supervisor that may work below this directory
    jobs/<job id>/<step id>/              one step (a round of a job); step id = "a<attempt>-r<round>"
        plan.json                         Plan, written by the orchestrator before `start`
        journal.jsonl                     events, appended by the supervisor, one JSON object a line
        supervisor.pid, supervisor.log
        contact                           touched by every `status`: the orchestrator still cares
        trials/<trial id>/                everything one trial left behind (see TRIAL_FILES)

Verbs: `python3 agents/<hash>.pyz --root <work dir> VERB [ARGS]`; each prints one JSON object on
stdout and exits 0, or `{"error": {"code": ..., "message": ...}}` and exits 1. Each verb first undoes
tuning that a supervisor which is no more left behind.

    facts                           {"facts": {...}}: what the host says of itself (facts.py)
    ready --keep-days N --limit-bytes B [--project ID --commits SHA...] [--paths PATH...]
                                    what a new job begins with, in one call: stop-all, prune (at most each
                                    10 min), facts, commits, has: {"stopped": [...], "facts": {...},
                                    "commits": {sha: bool}, "present": {path: bool}}
    start JOB STEP                  leaves a detached supervisor behind: {"pid": 123}; starting a step
                                    that was started before changes nothing: {"pid":…, "already": true};
                                    {"error": {"code": "busy"}} where another step holds host.lock
    status JOB STEP --offset N      {"alive": bool, "offset": M, "events": [...], "started": bool,
                                    "now": unix seconds by the host's clock}
                                    events appended at or after byte N; partial last line is left for later;
                                    "started" is false where no supervisor ever ran for this step
    log JOB STEP COMMIT --offset N  {"offset": M, "text": "..."}: that step's build log from byte N,
                                    at most 64 KiB, UTF-8 with replacement
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

Plan (plan.json), the same for every host of the job but for `self`:

    {"schema": 2, "job": "...", "step": "a1-r1",
     "silence_s": 600,                     stop everything when `contact` is older than this
     "self": "a", "lead": "a",             labels of hosts; the lead's supervisor works through the trials
     "secret": "<64 hex digits>" | null,   the job's own; needed where there are several hosts
     "hosts": {"a": {"address": "10.9.0.1", "port": null},
               "b": {"address": "10.9.0.2", "port": 40123 | null}},
                                           `port`: where a follower listens (its own event `listening` told
                                           it); null for the lead, and in a follower's own plan
     "tuning": {"governor": "performance"},  what to set on this host for this step, undone after (tuning.py)
     "builds": [{"commit": "<sha>",
                 "source": {"archive": "sources/<sha>.tar.gz"} | {"repository": "<project id>"},
                 "tree": "builds/<…>", "on": ["a"],        labels of the hosts that need it
                 "steps": [["{python}", "-m", "compileall", "."]], "env": {}, "timeout_s": 600}],
     "trials": [{"id": "...", "tree": "builds/<…>", "commit": "<sha>",
                 "server": {"on": "a", "argv": ["{python}", "server.py", "--port", "{port}"], "env": {},
                            "limits": LIMITS, "port": 8080 | null},        null = kernel chooses
                 "ready": {"path": "/hello", "status": 200, "body": "Hello, World!" | null,
                           "timeout_s": 10},
                 "services": [{"name": "redis", "on": "b", "count": 1, "argv": ["redis-server", "--port",
                               "{port}", "--bind", "{bind}"], "env": {}, "limits": LIMITS,
                               "port": null | 6379,        with count 1 only
                               "ready": {"path": null | "/status", "status": 200, "timeout_s": 10}}],
                                           path null = a TCP connection is enough
                 "loads": [{"argv": ["{tool}", "...", "http://{address}:{port}/hello"],
                            "kind": "warmup" | "measure", "wall_limit_s": 30.0}],
                 "tool": {"name": "oha", "path": "tools/<sha256>/oha" | "/abs/path", "limits": LIMITS},
                 "warmup_s": 1.0,                    rows that start before this are not counted
                 "cooldown_s": 0.2, "expected_s": 5.0}]}   the load's own time, as far as it is known

The processes of a service are its parts "service:<name>:<n>", n from 1.

LIMITS (limits.py): {"cpus": [0] | null, "cpu_quota": 0.5 | null (CPUs), "memory_bytes": n | null,
"open_files": n | null}. The load tool always runs on the lead.

Words that are replaced inside each argument and environment value, never through a shell:
{python} {port} {tool} {out} {rows} {trial_dir} {tree}; {bind} is the address that a server of this host
has to listen on and {address} the one where the lead finds the server under test (both 127.0.0.1 where the
plan has one host; {address} has brackets where it is IPv6); for each service NAME {NAME_host}, {NAME_port}
(of its first process) and {NAME_addresses} ("host:port,host:port,…", as the server's host reaches them).
{out} is where the tool writes its JSON, {rows} its SQLite rows.

A trial: services in their order, each ready before the next; the server, ready as the lead sees it;
warm-up; load; the same answer again; everything stopped. All its processes start anew for each trial.

Events (journal.jsonl), each with "t" (unix seconds, float) and "event":

    supervisor_started {pid}
    tuned {applied: {knob: value}, refused: {knob: why}} · untuned {}
    build_started {commit} · build_done {commit, cached, seconds} · build_failed {commit, message, output}
    listening {port}                           a follower is ready for its lead (peers.py)
    trial_started {trial} · phase {trial, phase: "starting"|"warming up"|"measuring"|"stopping"|"cooling",
                                   quiet_s}   the orchestrator does not ask again for quiet_s seconds
    trial_done {trial}                         its files are complete
    trial_failed {trial, code, message, output}   code: see FAILURES; output = tail of the server's output
    round_done {}                              the supervisor ends after it
    aborted {reason, code}                     code: "stopped" | "silence" | "peer_lost" | "internal"

A failed build or a server that does not start fails the trials that need it; the rest goes on. A lost
peer ends the step on all its hosts.

TRIAL_FILES (on the lead): result.json (below), tool.json (raw tool output), tool.stderr, server.log (tail,
64 KiB), rows.json (reduced rows, below).

result.json: {"schema": 2, "trial": "...", "argv": [...], "tool": {"name","version","sha256"},
  "rc": 0, "signal": null, "started_at": unix, "ended_at": unix, "wall_s": ..., "port": 12345,
  "server_argv": [...], "server_exit": null | code (it died before we stopped it),
  "load_started_at": unix, "load_ended_at": unix (of the measuring load),
  "window_s": null,
  "usage": {"server_cpu_s": x|null, "tool_cpu_s": x|null, "server_peak_rss_bytes": n|null,
            "server_voluntary_switches": n|null, "server_involuntary_switches": n|null,
            "server_read_bytes": n|null, "server_written_bytes": n|null,
            "steal_s": x|null, "reasons": {key: why null}},
  "samples": [{"t": s since load start, "server_cpu_s":…, "server_rss_bytes":…, "tool_cpu_s":…,
               "server_switches":…, "server_io_bytes":…, "temperature_c":…, "clock_mhz":…}],
               of the server's host, but for tool_cpu_s; with several hosts t is its own clock's
  "limits": {"server": APPLIED, "tool": APPLIED, "service:<name>:<n>": APPLIED},   read back (limits.py)
  "on": {"server": "b", "tool": "a"},          labels of the plan's hosts
  "peer_gap_s": longest wait for a peer's answer during the load | null with one host,
  "load_before": load1|null (with several hosts the higher one of the server's and the lead's),
  "hung": bool (the wall limit was reached and the tool interrupted)}

APPLIED: {"mechanism": "cgroup2" | "cgroup1" | "job" (Windows) | "affinity" (none of them),
  "cpus": [..]|null, "cpu_quota": x|null, "memory_bytes": n|null, "open_files": n|null,
  "refused": {limit: why it does not hold, or not as asked},
  "throttled": periods of 100 ms in which the quota was used up,      only with a quota that holds
  "oom_kills": processes that the memory limit ended}                 only with one that holds

rows.json: {"schema": 1,
  "all": {"n": rows of the whole run, "percentiles": {"p10": s, …}},   oha's definition, sorted[floor(p/100·n)],
                                                    raw floats of duration: equal to oha's own, bit for bit
  "window": {"start_s": warmup_s, "end_s": last end of a counted row},
  "ok":    {"value_us": [...], "count": [...]},      distinct latencies, ascending, answered 2xx/3xx, after warm-up
  "other": {"value_us": [...], "count": [...]},      answered with any other status
  "by_status": {"200": n}, "bytes": n,
  "slices": [{"t": 0, "answered": n, "ok": n, "bytes": n, "p50_us":…, "p90_us":…, "p99_us":…, "max_us":…}]}
  slices are one second wide, by end time, t counted from the start of the window.
"""

SCHEMA = 2

#: Codes of `trial_failed`: what went wrong with one trial.
FAILURES = (
    "build_failed",
    "server_did_not_start",
    "server_not_ready",
    "wrong_answer",
    "server_died",
    "port_in_use",
    "service_not_ready",
    "service_died",
    "tool_missing",
    "tool_failed",
    "output_lost",
    "internal",
)

#: Of these, the host is to blame and not what was measured: the trial may be tried again.
INFRASTRUCTURE_FAILURES = ("output_lost", "internal")

#: Rows kept of a trial; a plan that would exceed it is refused.
MAX_ROWS = 5_000_000

TRIAL_FILES = ("result.json", "tool.json", "tool.stderr", "rows.json", "server.log")
