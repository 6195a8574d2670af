"""The contract between the orchestrator and the agent: files, commands, exit codes.

Layout below the host's work directory (all paths are relative to it, all names are ids or hashes):

    agents/<hash>.pyz                     the agent, a zip application named by a hash of its files
    tools/<sha256>/oha                    a load tool that the orchestrator sent
    repositories/<project id>.git         bare repository, filled from bundles
    bundles/<name>.bundle                 a git bundle; removed by `take-bundle`
    sources/<commit>.tar.gz               `git archive` of a commit: of a submodule, and for hosts
                                          without git
    sources/<commit>-lfs.tar              the files of Git LFS of a commit and of its submodules
    builds/<commit>-<inputs hash>/        the build of a commit:
        tree/                             the checked-out files, with submodules in their places
        repositories/<name>/              the files of another repository that the build uses
        .done                             complete; the name of the separate user that made it
        build.log                         the output of the steps
        digests.json, period.json         what identifies the build, and when its steps ran
                                          (builds/build_records.py)
        home/                             the home of that user
        installed                         the name of its folder below installs/
    installs/<name>/                      an install of a recipe (builds/installs.py); <name> is a
                                          hash of the recipe's key and the contents of its files
        source/                           a copy of these files: the folder of the steps
        repositories/<name>/              the files of another repository that the steps use
        installed/                        the installed files
        exposed                           exists while build steps run that could change it
        .done                             complete
        install.log                       the output of the steps
    programs.json                         versions of the host's programs, cached for a day
                                          (platform/programs.py)
    scratch/                              temporary files of measured code that runs as a separate
                                          user; new for each build and trial, removed after the step
                                          (sandbox/directories.py)
    tuning.json                           changes of host tuning that are not undone yet
                                          (platform/linux/tuning.py)
    sizes.json                            the sizes of builds and installs (old_files.py)
    pruned                                touched when a round has looked for old files
    data/<name>/                          the data of prepare steps (sandbox/data_folders.py); <name>
                                          is that of a job, one of its builds, or its trial
        content/                          what measured code may change
        prepared.json                     the steps that have run
    host.lock                             held by the only supervisor that may work below this
                                          directory
    installation                          a random id of this work directory (platform/machine.py)
    reserve                               a command for people on the host (reservation.py)
    reservation.json                      its reservation: until (unix seconds), by, reason
    jobs/<job id>/tls/                    the job's certificates, removed with it
    jobs/<job id>/<step id>/              one step (a round of a job), "a<attempt>-r<round>":
        plan.json                         Plan, written by the orchestrator before `start`
        journal.jsonl                     events of the supervisor, one JSON object per line
        supervisor.pid                    its pid, start time in ticks, and boot id
        supervisor.log
        beat                              the monotonic time of the supervisor's last turn
        keepalive                         touched by every `status`: the orchestrator still polls
        dropped.json                      ids of dropped trials, written by the orchestrator while
                                          the step runs: they are skipped, the current one is ended
        measure_now                       exists if trials should not wait for quiet hosts
        trials/<trial id>/                the files of one trial (see TRIAL_FILES)

Commands: `python3 agents/<hash>.pyz --root <work dir> COMMAND [ARGS]`; each prints one JSON object
on stdout and exits 0, or `{"error": {"code": ..., "message": ...}}` and exits 1. Each command first
undoes the tuning of a dead supervisor.

    facts [--folders FOLDER...]
        {"facts": {...}, "reservation": RESERVATION}: the facts of the host (platform/facts.py);
        {"error": {"code": "network_file_system"}} if other machines can share the work directory
    idle-check
        {"interference": INTERFERENCE}, measured for two seconds without work of the agent
        (monitoring/environment.py), with temperatures and others' CPU time
    prepare [--project ID --commits SHA...] [--paths PATH...] [--programs NAME...] [--owner ID]
            [--folders FOLDER...] [--machine-lock]
        prepares a new job in one call: stop-all, facts, commits, has:
        {"stopped": [...], "facts": {...}, "commits": {sha: bool}, "present": {path: bool},
        "reservation": RESERVATION};
        facts include the named programs in addition to the default ones; programs are searched in
        the folders first;
        {"error": {"code": "busy"}} if a step of another owner runs below the work directory, or,
        with --machine-lock, if another job holds the lock of the machine (machine_lock.py)
    check-user NAME
        {"user": {"name": ..., "uid": n, "gid": n}} if measured code can run as this user; else an
        error with the obstacle and its fix (sandbox/user.py)
    start JOB STEP
        reads the secrets that the plan names from stdin: {"NAME": "value"}; they are kept in the
        supervisor's memory and replaced by *** in all output
        starts a detached supervisor: {"pid": 123}; for a step that was started before it changes
        nothing: {"pid": ..., "already": true}; {"error": {"code": "busy"}} if another step holds
        host.lock, or another job the lock of the machine
    status JOB STEP --offset N
        {"alive": bool, "offset": M, "events": [...], "started": bool, "now": unix seconds by the
        host's clock, "dropped": number of ids in dropped.json, "beat_age_s": s|null, "idle_s":
        s|null}: events appended at or after byte N; an incomplete last line is left for the next
        call; "started" is false if no supervisor ever ran for this step; "beat_age_s" is the time
        since the last turn of the supervisor's main loop, "idle_s" since the last event
    log JOB STEP BUILD --offset N
        {"offset": M, "text": "..."}: the log of the build of this id in that step from byte N, at
        most 64 KiB, UTF-8 with replacement
    stop JOB STEP
        stops the supervisor and all its processes: {"stopped": bool}, and "unkillable": a text, if
        one of them exists after SIGKILL
    stop-all
        the same for every supervisor below the work directory, and for the orphans of killed ones:
        {"stopped": ["job/step", ...]}
    begin-outliving, end-outliving
        the first starts a process that is detached as a supervisor is: {"pid": n|null}; the second,
        over another connection, ends it: {"alive": whether it was still there}
    prune --keep-days N --limit-bytes B
        removes files that were not used for N days, then the least recently used until at most B
        bytes are left: {"removed": [...], "bytes": left}
    reserve [TIME|off] [REASON...]
        for people on the host: writes or removes reservation.json, or shows it as text
    has PATH...
        {"present": {path: bool}} for files below the work directory
    commits PROJECT SHA...
        {"git": bool, "present": {sha: bool}} in repositories/<PROJECT>.git; "git" is false if the
        host has no git
    take-bundle PROJECT NAME
        fetches refs/pitwall/* from bundles/<NAME>.bundle and removes the file

RESERVATION: {"left_s": seconds, "by": "user", "reason": "..."}, or null without one

Plan (plan.json), the same for every host of the job except `self`, `tuning`, `run_as`, `tls`,
`disk`, `owner` and `env`:

    {"schema": 5, "job": "...", "step": "a1-r1",
     "silence_s": 600,
     "self": "a", "lead": "a",
     "secret": "<64 hex digits>" | null,
     "hosts": {"a": {"address": "10.9.0.1", "port": null},
               "b": {"address": "10.9.0.2", "port": 40123 | null}},
     "run_as": "bench" | null,
     "tuning": {"governor": "performance"},
     "owner": "<id of the host in Pitwall>", "machine_lock": bool, "env": {"http_proxy": "..."},
     "tls": {"ca": PEM, "cert": PEM | null, "key": PEM | null} | null,
     "quiet": {"busy_share": 0.1, "wait_s": 60},
     "disk": {"limit_bytes": 10737418240, "keep_days": 30},
     "builds": [BUILD, ...],
     "texts": {"<sha256>": "...", ...},
     "trials": [TRIAL, ...]}

    silence_s   stop everything if `keepalive` is older than this
    self, lead  labels of hosts; the lead's supervisor runs the trials
    secret      that of the job; required with several hosts
    port        where a follower listens (from its event `listening`); null for the lead, and in a
                follower's own plan
    run_as      the user that measured code runs as on this host; null: the agent's login. `start`
                refuses an unusable user
    owner       may be absent; steps of other owners are never stopped by `prepare`
    machine_lock  hold the lock of the machine while the step runs; may be absent
    env         variables of all processes of builds and trials on this host, except load tools;
                those of the plan replace them; may be absent
    tuning      settings of this host for this step, undone after it (platform/linux/tuning.py)
    tls         the temporary certificates of the job, written to jobs/<job>/tls/{ca,cert,key}.pem,
                the key for its owner only; "cert" and "key" are null for hosts without a server
    quiet       a trial waits while others use more than this share of a host's CPUs; all trials
                of the step together wait for at most `wait_s`
    disk        before the builds, files that were not used for `keep_days` are removed, then the
                least recently used until at most `limit_bytes` are left
    texts       the contents of the files of all trials, by their SHA-256

BUILD, unique on a host:

    {"id": "<sha>-<inputs hash>", "label": "system axum", "commit": "<sha>",
     "source": SOURCE, "repositories": {"framework": {"commit": "<sha>", "source": SOURCE}},
     "tree": "builds/<...>", "on": ["a"], "path": ["/usr/local/go/bin"], "install": INSTALL | null,
     "working_dir": "services/api" | null,
     "steps": [["{python}", "-m", "compileall", "."]], "env": {}, "timeout_s": 600}

    id          of a commit and a recipe; `label` is the name of the recipe, for events
    repositories other commits that the build and its processes use, may be absent; the folder of
                "framework" is {framework_tree}
    on          labels of the hosts that need it
    path        folders that come first on PATH
    working_dir the folder of the tree in which all steps run; null: the tree itself

SOURCE:

    {"archive": "sources/<sha>.tar.gz"} | {"repository": "<project id>"} | {"problem": "..."},
    and "submodules": [{"path": "vendor/lib", "archive": "sources/<sha>.tar.gz"}, ...]
    and "lfs_files": "sources/<sha>-lfs.tar"

    problem     the build fails with this message
    submodules  archives that are unpacked into folders of the tree, parents first; may be absent
    lfs_files   an archive whose files then replace the pointers of Git LFS; may be absent

TRIAL:

    {"id": "...", "tree": "builds/<...>", "commit": "<sha>",
     "path": {"a": ["/usr/local/go/bin"]},
     "server": {"on": "a", "argv": ["{python}", "server.py", "--port", "{port}"], "env": {},
                "limits": LIMITS, "port": 8080 | null},
     "ready": {"path": "/hello" | null, "status": 200, "body": "Hello, World!" | null,
               "timeout_s": 10, "protocol": "h1" | "h2" | "grpc", "tls": bool},
     "checks": [CHECK, ...],
     "services": [{"name": "redis", "on": "b", "count": 1,
                   "argv": ["redis-server", "--port", "{port}", "--bind", "{bind}"], "env": {},
                   "limits": LIMITS, "port": null | 6379,
                   "ready": {"path": null | "/status", "status": 200, "timeout_s": 10}}],
     "prepare": [PREPARE, ...],
     "loads": [LOAD, ...],
     "search": SEARCH | null,
     "files": {"load.lua": "<sha256>", "files/seed/items.sql": "<sha256>"},
     "tool": {"name": "oha", "path": "tools/<sha256>/oha" | "/abs/path", "limits": LIMITS,
              "reader": "oha", "cpus": 2},
     "shares": {"a": [{"name": "server", "cpus": null | 2}, {"name": "tool", "cpus": null}]},
     "network": {"delay_s": 0.02, "jitter_s": 0.002, "loss": 0.005, "rate_bps": 1e8 | null} | null,
     "cooldown_s": 0.2, "expected_s": 5.0}

    path        the same for all processes of the trial, by host
    shares      who gets separate CPUs on each host, and how many; null: a part of the rest. The host
                chooses them after its tuning (platform/placement.py). "cpus" of the tool is the
                number of threads in its command
    port        null: the kernel chooses. That of a service is possible with count 1 only
    ready       how to poll until a process is ready; path null: a connection is enough, with tls a
                handshake
    checks      run before the first and after the last load; the first is the request of the load
    loads       in order; one "measure", or several for a stepped load
    search      then `loads` are those of each probe, with one "measure"
    files       written into the trial's folder before anything starts: those of the definition
                below files/, and those of the load tool; each with its hash in plan.texts
    prepare     run in their order, each after its event
    reader      the reader that reduces the output of the tool (readers/registry.py)
    cpus        the number of threads of the tool
    network     the emulated network between server and load tool (network/); may be absent, and is
                null with several hosts. `delay_s` is added to a round trip, half in each direction,
                and varies by up to `jitter_s`. `loss`: the share of packets that is lost, and
                `rate_bps` bits per second, in each direction
    cooldown_s  a pause after the trial
    expected_s  the duration of the loads, as far as it is known

PREPARE: {"key": "...", "each": "job" | "commit" | "trial",
          "after": "build" | "services" | "server", "argv": ["{python}", "seed.py"], "env": {},
          "working_dir": null, "timeout_s": 60}
  Runs on the host of the server, as the server's user and within its limits. "trial": in each pass.
  "job" and "commit": unless a step with the same `key` has succeeded and its data are still in
  data/. `key` is a hash of the step and the files. A failed step fails the trial: "prepare_failed".

INSTALL: {"key": "...", "files": ["requirements.txt"], "repositories": ["framework"],
          "steps": [["python3.11", "-m", "venv", "{installed}"]], "timeout_s": 1800}
  `files` are files and folders of the tree, or "." for all. Their contents are part of the recipe.
  Runs before the steps of the build, with its env, unless a complete folder with the same key and
  contents exists. The steps run in a copy of `files`, which is {tree} for them. `repositories`, which
  may be absent, are those that the steps use: they get copies as well. The output of the steps is
  in the build's log. A failed step is a failed build, and so is a build step that changes
  {installed}.

Each "env" has the variables of processes: texts, or {"secret": NAME} for the value of a secret.

LOAD: {"argv": ["{tool}", "...", "http://{address}:{port}/hello"], "env": {},
       "kind": "primer" | "warmup" | "measure", "wall_limit_s": 30.0, "warmup_s": 1.0,
       "good_statuses": [200], "rate": 60.0 | null, "at_once": 10}
  Rows of a measured load that start before `warmup_s` are its warm-up, counted separately.
  Responses with other statuses than `good_statuses` (gRPC: [0]) are errors. wrk, ghz and scripts
  decide themselves which responses are good. `rate`: requests per second of an open load, null if
  it is that of the probe. `at_once`: the concurrent requests of a closed load.

CHECK: {"name": "load", "method": "GET", "path": "/hello", "headers": [["accept", "*/*"]],
        "body": base64 | null, "protocol": "h1" | "h2" | "h3" | "grpc", "tls": bool,
        "timeout_s": 10, "argv": ["{tool}", ...] | null, "statuses": [200] | null,
        "response_headers": {"content-type": "text/plain"},
        "response": {"text": "..."} | {"length": n} | {"sha256": "..."} | {"matches": "regex"} |
                    null,
        "encoding": "gzip" | "identity" | null, "grpc_status": 0 | null,
        "during_load": true, "volatile": ["regex"]}
  `argv` is the load tool's command line for one request, with h3 only. Each of `response_headers`
  must be equal; names are in lower case.
  h2 without tls is prior knowledge. Null is reported but not checked. `response` is compared with
  the received bytes, before decoding, but "text" and "matches" with the decoded body (identity,
  gzip, deflate). With h3 the load tool sends the request (`argv`), and only status and length are
  checked. The protocol of the response is always checked: it must be the requested one.
  With `during_load` the agent also sends the request while a measured load runs, about once per
  second (trials/answer_sampler.py), and the check "load" two more times before the loads. These
  requests of "load" have a unique x-request-id. `volatile`: see ANSWER.

SEARCH: {"objective": [{"metric": METRIC, "op": "<" | "<=" | ">" | ">=", "value": 0.05}, ...],
         "low": 100.0, "high": 100000.0, "duration_s": 5.0, "requests": 1011, "max_probes": 24,
         "confirmations": 5}
  METRIC is "latency.p99", "latency.mean", "latency.max", "success" or "delivered", in seconds or as
  a share; all conditions must hold. Rates are in requests per second, and the first probe is at
  `low`. `duration_s` is that of a pass's window: delivered = good / (rate x duration_s).
  `requests` must be due in a probe: at low rates it has up to MOST_PASSES passes, which count
  together. No rate is lower than this allows. `max_probes` limits the passes of all probes.
  trials/capacity.py computes the next rate, which is {probe_rate} in the argv of each load. The
  server is restarted for each pass. latency.p<percent> is by nearest rank; success = good / (good
  + other + errors, if rows or report contain them). The trial fails if a probe fails for another
  reason than its load, or if no probe finished.

The processes of a service are "service:<name>:<n>", n from 1.

LIMITS (platform/limits.py): {"share": "server" | null (any CPU), "cpu_quota": 0.5 | null (CPUs),
"memory_bytes": n | null, "open_files": n | null}. The load tool always runs on the lead.

Measured code comes from a definition or a repository: steps of install and build, prepare steps,
servers, services, and a script in place of a load tool. With "run_as" it runs as that user, and
load tools run as the agent's login. Then its {trial_dir}, TMPDIR and HOME differ from the trial's
folder and the login's home (sandbox/directories.py), and {files}, {ca}, {cert} and {key} are copies
that it may read.

Placeholders are replaced in each argument and environment value, never by a shell:

    {python} {tree}        install, build, server, services, loads
    {installed}            the same; it is not replaced without an install
    {port}                 server, services: the port of the process; loads, and prepare steps
                           after the server: that of the server
    {trial_dir} {files}    server, services, prepare, loads
    {trial_data}           server, services, prepare, loads: an empty folder, new for each pass
    {job_data} {commit_data}
                           the same, with the data of steps of `each` "job" and "commit"; they are
                           not replaced without such a step
    {ca} {cert} {key}      server, services, prepare, loads: the job's PEM files
    {bind}                 server, services, prepare, loads: the address on which a server of this host must
                           listen; 127.0.0.1 if the plan has one host, and
                           EMULATED_SERVER_ADDRESS in an emulated network
    {NAME_host} {NAME_port} {NAME_addresses}
                           server, services, prepare, loads: for each started service NAME the host,
                           the port of its first process, and "host:port,host:port,...", as the
                           server's host reaches them
    {address}              loads: the address of the server under test for the lead, in brackets if
                           it is IPv6; {bind} if the plan has one host
    {tool} {probe_rate}    loads
    {out} {rows}           loads: the files of the tool's report and of its rows, new for each load;
                           its stdout is next to {out} ({trial_dir}/tool.stdout, for the second load
                           tool-2.stdout)

A trial has these steps. All processes start again for each trial, and for each probe of a search:

    1. Create its folder with `files`. End the measurement of the environment of every host, which
       began with the end of the processes or of the cooldown of the trial before. Measure it again
       until it is quiet or the time limit of `quiet` is reached.
       Set up the emulated network, if there is one, and measure it.
    2. Start the services in order, each ready before the next.
    3. Start the server, wait until it is ready for the lead, and check where it runs from.
       Prepare steps run before 2, between 2 and 3, and after 3.
    4. Run the checks, the loads in order, and the checks again.
    5. Stop all processes, and reduce the output of the tool. The files of primers and warm-ups are
    removed.

A check with a problem fails the trial: "wrong_protocol" for another protocol than requested, else
"wrong_answer". An h3 check by the tool must end within its timeout_s plus 10 s.

Events (journal.jsonl), each with "t" (unix seconds, float) and "event":

    supervisor_started {pid}
    tuned TUNED
    untuned {left: {knob: reason}}
        left: settings that were not restored; the next command tries again
    build_started {build, commit, label}
    build_done {build, commit, cached, seconds, installed, digests: {source, build}}
        installed: the name of its folder, or null; digests: as in BUILT
    build_failed {build, commit, message, output}
    listening {port}
        a follower is ready for its lead (hosts/secure_channel.py)
    trial_started {trial}
    host_busy {trial, host, busy_share, foreign, quiet_s}
        the trial waits, because others use this host; the values are those of ENVIRONMENT
    prepared {trial, step, each, seconds}
        a prepare step has succeeded; step: its number from 1
    phase {trial, phase, quiet_s}
        nobody should poll for quiet_s seconds; trial is null outside of the trials
    trial_done {trial, quiet_s}
        its files are complete; a cooldown follows
    trial_failed {trial, code, message, output}
        code: see FAILURES; output: tail of the server's output
    trial_dropped {trial}
        it was in dropped.json before it began
    settled {seconds, left}
        after builds of more than a second: how long the host was given, and what is left
    round_done {}
        the supervisor ends after it
    aborted {reason, code}
        code: "stopped" | "silence" | "peer_lost" | "internal" | "disk_full" | "disk_limit" (the
        files of the step alone exceed the limit) | "unkillable" (a process does not end)

A failed build or a server that does not start fails the trials that need it; the others continue. A
lost host ends the step on all hosts.

TRIAL_FILES (on the lead): result.json (below), tool.stderr, server.log (tail, 64 KiB), and for each
measured load tool.json (its report, as the reader wrote it) and rows.json (reduced rows, below);
for the k-th load, from the second on, tool-k.json and rows-k.json. With prepare steps also
prepare.log, their output of at most 64 KiB.

result.json:

    {"schema": 5, "trial": "...", "tree": "builds/<...>",
     "tool": {"name", "version", "sha256"}, "tool_cpus": n,
     "started_at": unix, "ended_at": unix, "wall_s": n,
     "port": 12345, "port_checked": bool, "build": BUILT, "server_argv": [...],
     "server_exit": null | code, "prepare": [PREPARED, ...],
     "checks": [CHECKED, ...], "loads": [LOADED, ...], "search": SEARCHED | null,
     "limits": {"server": APPLIED, "service:redis:1": APPLIED, "tool": APPLIED, ...},
     "on": {"server": label, "tool": label}, "hosts": {"a": ENVIRONMENT, ...},
     "placement": {"a": PLACEMENT, ...}, "network": NETWORK | null,
     "load_before": load1 | null}

    port_checked  the kernel confirmed that the server itself listens there; false if unknown
    server_exit   set if it ended before it was stopped
    limits        of each process, as the kernel has them
    hosts         each host before the processes of the trial started
    load_before   with several hosts the higher one of the server's and the lead's

PLACEMENT: {"cpus": {share: [1, 5] | null (any), ...}, "system": [0, 4], "agent": [0, 4] | null,
            "siblings": [...], "shared": [["server", "tool"], ...], "problem": "...", "note": "..."}
  "agent": the CPUs of the agent, null if unknown; the others as in platform/placement.py.

NETWORK: {"round_trip_s": x|null, "jitter_s": x|null, "lost": {"requests": LOST, "responses": LOST},
          "rate_bps": {"requests": x, "responses": x} | null, "queues": "...", "changed": bool}
  The emulated network as it was measured before the services started (network/probe.py).
  LOST: {"sent": n, "lost": n}. "requests" is the direction from the load tool to the server.
  "round_trip_s" is the median, null if all were lost. "queues" is the output of `tc qdisc show` for
  both ends, and "changed" says whether it was different after the loads.

BUILT: {"source": hex | null, "build": hex | null, "checked": bool}
  The digests of builds/build_records.py. `checked`: each process of the server that listens on the
  port runs from the build of the commit (builds/server_origin.py); false if the host does not show
  it. A server from elsewhere fails the trial: "wrong_build".

PREPARED: {"step": 1, "run": "command", "each": "job", "after": "services", "seconds": x, "runs": n}
  `runs`: how often the trial ran it; 0 if its data existed. `seconds`: of its last run.

SEARCHED: {"capacity": r | null, "low": r | null, "high": r | null,
           "stopped": "converged" | "at the limit" | "below the start" | "budget",
           "probes": [{"loads": [n, ...], "rate": r, "passed": bool, "reason": "latency.p99 ..."}]}
  `low` and `high` bound the 90 % interval of the posterior, and `capacity` is its median; null if
  not both results occurred. `loads` are the indexes in "loads", without a discarded pass: the
  server ended or answered wrongly afterwards, or the tool was interrupted. Then the probe has
  failed. "checks" and "limits" are those of the last pass that was not discarded.

CHECKED: {"name": "load", "when": "before" | "after", "problem": null | "status 500 instead of 200",
          "protocol": "h1"|…|null, "status": 200|null, "length": n|null, "sha256": "…"|null,
          "encoding": "gzip"|"identity"|null}

LOADED: {"argv": [...], "rc": 0, "signal": null, "rate": r|null (closed loop),
  "load_started_at": unix, "load_ended_at": unix,
  "hung": bool (wall limit reached, tool interrupted),
  "usage": {"server_cpu_s": x|null, "tool_cpu_s": x|null, "services_cpu_s": x|null,
            "server_peak_rss_bytes": n|null, "tool_peak_rss_bytes": n|null,
            "server_voluntary_switches": n|null, "server_involuntary_switches": n|null,
            "server_read_bytes": n|null, "server_written_bytes": n|null,
            "steal_s": x|null, "sampler_cpu_s": x|null, "ended_workers": n,
            "reasons": {key: why it is null}},
            ended_workers: processes of the server that existed before the load and ended under it
  "samples": [{"t": s since load start, "server_cpu_s":…, "server_rss_bytes":…, "tool_cpu_s":…,
               "server_switches":…, "server_io_bytes":…, "temperature_c":…, "clock_mhz":…,
               "connections": open TCP connections to the server|null}],
               of the server's host, except tool_cpu_s; with several hosts t is by its own clock
  "interference": {"a": INTERFERENCE, …},         each host while the load ran
  "peer_gap_s": longest wait for a follower's answer during the load | null with one host,
  "answers": ANSWERS}

ANSWERS: {"sent": n, "unanswered": n, "first_s": x|null, "later_s": x|null, "dropped": n,
          "volatile_problem": "…"|null, "seen": [ANSWER, ...]}
  Of the checks with `during_load`. "sent" and "unanswered" count requests during the load.
  "first_s" is how long the first answer to "load" took, "later_s" the fastest of the repeats before
  the load. "dropped" counts answers beyond 20 different ones of a check, which have no ANSWER.

ANSWER: {"check": "load", "when": "before" | "during" | "after", "count": n, "at_s": s|null,
         "problem": null|"…", "protocol": "h1"|…|null, "status": 200|null, "length": n,
         "sha256": "…",
         "media_type": "text/html"|null, "encoding": "gzip"|…|null, "closes": bool|null,
         "echoes": bool|null, "cached": bool}
  Equal answers. "at_s": when the first one was requested, since the start of the load. "length" and
  "sha256" are of the body without the request's id and, decoded, without all matches of `volatile`.
  "closes": whether the server ended the connection, with h1 only. "echoes": whether the id of the
  request was in the answer; null without an id. "cached": whether a header reports a cache.

ENVIRONMENT and INTERFERENCE: see monitoring/environment.py; a fact that cannot be read is null,
with a reason in "reasons".

TUNED: {"applied": {knob: value}, "refused": {knob: reason}}
  The settings of the plan's "tuning" that are set completely for the step, and the others.

APPLIED: {"mechanism": "cgroup2" | "cgroup1" | "job" (Windows) | "affinity" (none of them),
  "cpus": [..]|null, "cpu_quota": x|null, "memory_bytes": n|null, "open_files": n|null,
  "file_bytes": n|null (of one file), "processes": n|null (and threads),
  "user": name|null (a separate user),
  "refused": {limit: why it is not enforced, or not as requested},
  "changed": {limit: its values before and after the load},
  "throttled": n, "oom_kills": n, "refused_forks": n, "peak_memory_bytes": n}
  `changed`: limits that something changed or removed in between, and "group" if the process left
  its control group; `throttled`: periods of 100 ms in which the quota was exhausted; `oom_kills`:
  processes that the kernel ended for lack of memory; `refused_forks`: how often the control group
  was refused another process. These exist only with a control group that counts them.

rows.json:

    {"schema": 5,
     "all": {"n": n, "percentiles": {"p10": s, ...}},
     "window": {"start_s": warmup_s, "end_s": s | null},
     "ok": {"value_us": [...], "count": [...]},
     "other": {"value_us": [...], "count": [...]},
     "by_status": {"200": n} | null, "bytes": n | null, "length": {"min": n, "max": n} | null,
     "warmup": {"n": n, "slices": [SLICE, ...]}, "slices": [SLICE, ...],
     "errors": {class: n} | null, "error_texts": {class: [text, ...]},
     "protocol": "h1" | ... | null, "corrected": bool, "tool_metrics": {key: number}}

    all           rows of the whole load, as the tool defines percentiles, so that its report can be
                  compared bit for bit; percentiles are {} without any
    window        from the end of the warm-up to the last end of a counted row
    ok, other     distinct latencies after the warm-up, ascending, of successes and of responses
                  with any other status
    by_status, bytes, length
                  of the window; bytes of bodies, lengths of those of successes
    warmup        rows that start before the window
    slices        of the window; [] if the tool reports no times
    errors        null: only the tool's report has them
    protocol      as reported by the tool
    corrected     latencies count from when the request was due
    tool_metrics  metrics of the tool, such as the readings of a script

SLICE: {"t": 0, "answered": n, "ok": n, "bytes": n, "p50_us":…, "p90_us":…, "p99_us":…, "max_us":…}:
one second, by end time, t counted from the start of the window (warm-up: below 0, except requests
that began in it and ended in the window). A second without the end of a request has no slice. Null
is unknown, here too.
"""

SCHEMA = 5
#: The most passes of a probe of a capacity search.
MOST_PASSES = 4

#: The fewest characters of a secret: a shorter one cannot be distinguished from other text.
SHORTEST_SECRET = 8

#: The server's address in an emulated network: of 198.18.0.0/15, which is for benchmarks (RFC 2544).
EMULATED_SERVER_ADDRESS = "198.18.0.2"

#: In the files of an install: all files of the commit.
WHOLE_COMMIT = "."

#: In the folder of a trial: the files of the definition.
FILES = "files"

#: The shortest time between two polls of a step, and the longest one in a build. A build is polled
#: again after this share of the time since its last event.
POLL_S, LONGEST_BUILD_POLL_S = 0.5, 5.0
BUILD_POLL_SHARE = 0.1

#: The codes of `trial_failed`.
FAILURES = (
    "build_failed",
    "server_did_not_start",
    "server_not_ready",
    "wrong_answer",
    "wrong_protocol",
    "wrong_build",
    "server_died",
    "port_in_use",
    "service_not_ready",
    "service_died",
    "prepare_failed",
    "tool_missing",
    "tool_failed",
    "network_failed",
    "output_lost",
    "internal",
    "cancelled",
)

#: The failures that the host causes and not the measured code: the trial may be repeated.
INFRASTRUCTURE_FAILURES = ("network_failed", "output_lost", "internal")

#: The maximum of rows of a trial; a plan that would exceed it is refused.
MAX_ROWS = 5_000_000

TRIAL_FILES = ("result.json", "tool.json", "tool.stderr", "rows.json", "server.log")
#: In addition, for a trial with prepare steps.
PREPARE_LOG = "prepare.log"


def compute_build_poll_s(idle_s: float) -> float:
    """Return the seconds until the next poll in a build whose last event is `idle_s` old."""
    return min(LONGEST_BUILD_POLL_S, max(POLL_S, BUILD_POLL_SHARE * idle_s))


def load_files(n: int) -> tuple[str, str]:
    """Return names of the report and the reduced rows of the n-th measured load, n from 0."""
    return ("tool.json", "rows.json") if n == 0 else (f"tool-{n + 1}.json", f"rows-{n + 1}.json")
