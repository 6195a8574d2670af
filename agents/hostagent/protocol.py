"""What the orchestrator and the agent say to each other: files, verbs, exit codes.

Layout below the host's work directory (all paths relative to it, all names are ids or hashes):

    agents/<hash>.pyz                     the agent, a zip application named by the hash of its files
    tools/<sha256>/oha                    a load tool that the orchestrator sent
    sources/<commit>.tar.gz               `git archive` of a commit
    builds/<commit>-<recipe hash>/tree/   the unpacked and built commit; `.done` beside it = complete
    jobs/<job id>/<step id>/              one step (a round of a job); step id = "a<attempt>-r<round>"
        plan.json                         Plan, written by the orchestrator before `start`
        journal.jsonl                     events, appended by the supervisor, one JSON object a line
        supervisor.pid, supervisor.log
        contact                           touched by every `status`: the orchestrator still cares
        trials/<trial id>/                everything one trial left behind (see TRIAL_FILES)
    build-logs are written to jobs/<job id>/<step id>/build-<commit>.log

Verbs: `python3 agents/<hash>.pyz --root <work dir> VERB [ARGS]`; each prints one JSON object on
stdout and exits 0, or `{"error": {"code": ..., "message": ...}}` and exits 1.

    facts                           {"facts": {...}}: what the host says of itself (facts.py)
    start JOB STEP                  leaves a detached supervisor behind: {"pid": 123}; starting a step
                                    that was started before changes nothing: {"pid":…, "already": true}
    status JOB STEP --offset N      {"alive": bool, "offset": M, "events": [...], "started": bool}
                                    events appended at or after byte N; partial last line is left for later;
                                    "started" is false where no supervisor ever ran for this step
    stop JOB STEP                   ends the supervisor and all that it started: {"stopped": bool}
    stop-all                        the same for every live supervisor below the work directory
    prune --keep-days N             removes old jobs, builds and sources: {"removed": [...]}
    has PATH...                     {"present": {path: bool}} for files below the work directory

Plan (plan.json):

    {"schema": 1, "job": "...", "step": "a1-r1",
     "silence_s": 600,                     stop everything when `contact` is older than this
     "builds": [{"commit": "<sha>", "source": "sources/<sha>.tar.gz", "tree": "builds/<…>",
                 "steps": [["{python}", "-m", "compileall", "."]], "env": {}, "timeout_s": 600}],
     "trials": [{"id": "...", "tree": "builds/<…>", "commit": "<sha>",
                 "server": {"argv": ["{python}", "server.py", "--port", "{port}"], "env": {},
                            "cpus": [0] | null, "port": 8080 | null},      null = kernel chooses
                 "ready": {"path": "/hello", "status": 200, "body": "Hello, World!" | null,
                           "timeout_s": 10},
                 "loads": [{"argv": ["{tool}", "...", "http://127.0.0.1:{port}/hello"],
                            "kind": "warmup" | "measure", "wall_limit_s": 30.0}],
                 "tool": {"name": "oha", "path": "tools/<sha256>/oha" | "/abs/path", "cpus": [1] | null},
                 "warmup_s": 1.0,                    rows that start before this are not counted
                 "cooldown_s": 0.2, "expected_s": 5.0}]}

Words that are replaced inside each argument, never through a shell: {python} {port} {tool} {out}
{rows} {trial_dir} {tree}. {out} is where the tool writes its JSON, {rows} its SQLite rows.

Events (journal.jsonl), each with "t" (unix seconds, float) and "event":

    supervisor_started {pid}
    build_started {commit} · build_done {commit, cached, seconds} · build_failed {commit, message, output}
    trial_started {trial} · phase {trial, phase: "starting"|"warming up"|"measuring"|"stopping"|"cooling",
                                   quiet_s}   the orchestrator does not ask again for quiet_s seconds
    trial_done {trial}                         its files are complete
    trial_failed {trial, code, message, output}   code: see FAILURES; output = tail of the server's output
    round_done {}                              the supervisor ends after it
    aborted {reason}                           "stopped" | "silence" | message of an unexpected error

A failed build or a server that does not start fails the trials that need it; the rest goes on.

TRIAL_FILES: result.json (below), tool.json (raw tool output), tool.stderr, server.log (tail, 64 KiB),
rows.json (reduced rows, below).

result.json: {"schema": 1, "trial": "...", "argv": [...], "tool": {"name","version","sha256"},
  "rc": 0, "signal": null, "started_at": unix, "ended_at": unix, "wall_s": ..., "port": 12345,
  "server_argv": [...], "server_exit": null | code (it died before we stopped it),
  "load_started_at": unix, "load_ended_at": unix (of the measuring load),
  "window_s": null,
  "usage": {"server_cpu_s": x|null, "tool_cpu_s": x|null, "server_peak_rss_bytes": n|null,
            "server_voluntary_switches": n|null, "steal_s": x|null, "reasons": {key: why null}},
  "samples": [{"t": s since load start, "server_cpu_s":…, "server_rss_bytes":…, "tool_cpu_s":…}],
  "load_before": load1|null, "hung": bool (the wall limit was reached and the tool interrupted)}

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

SCHEMA = 1

#: Codes of `trial_failed`: what went wrong with one trial.
FAILURES = (
    "build_failed",
    "server_did_not_start",
    "server_not_ready",
    "wrong_answer",
    "server_died",
    "port_in_use",
    "tool_missing",
    "tool_failed",
    "output_lost",
    "internal",
)

#: Rows kept of a trial; a plan that would exceed it is refused.
MAX_ROWS = 5_000_000

TRIAL_FILES = ("result.json", "tool.json", "tool.stderr", "rows.json", "server.log")
