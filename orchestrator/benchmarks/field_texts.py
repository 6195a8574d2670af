"""Descriptions of the fields of a definition in one line, for editors (docs/definitions.md)."""

from collections.abc import Mapping

_START = "The command as a list of arguments, without a shell. Placeholders in braces are replaced."
_ENV = (
    "Environment variables: texts, with placeholders in braces, or secrets of the project, such as "
    "{secret: NAME}."
)
_TIMEOUT = "Timeout in seconds."

#: Model → field → text.
TEXTS: Mapping[str, Mapping[str, str]] = {
    "Spec": {
        "version": "The version of this format: 1.",
        "title": "The title.",
        "description": "A description: what it measures and why.",
        "subject": "The server under test.",
        "services": "Services that run in addition to the server, by name; started in this order "
        "for each trial.",
        "repositories": "Commits of other projects of the team, by name; their files are in the "
        "folder {NAME_tree}.",
        "files": "Small text files, path to content, which its processes find in the folder "
        "{files}; at most 16.",
        "prepare": "Commands that create data before the load, in this order.",
        "load": "The load on the server.",
        "network": "An emulated network between the load tool and the server, on one host.",
        "checks": "Requests with their expected responses, checked before and after each load.",
        "known": "True values of metrics in SI units, if the server is built to have them.",
        "measured": "The side to measure: server or client; the other is constant.",
        "requires": "Programs that the target needs, each with versions such as "
        "'>=3.11', or '*'. On a host that lacks one a case is unsupported.",
        "limits": "Resource limits of the server and the load tool.",
        "matrix": "The axes: names with their values. A case has one value of each axis.",
        "options": "Changes of this definition by a value of an axis: axis, value (as text), "
        "changes. Mappings are merged, the rest is replaced.",
        "include": "Additional cases; each names every axis.",
        "exclude": "Excluded cells; a value or a list of values for some axes.",
        "baseline": "The values of axes that are the 100 % reference of reports.",
        "contest": "The axis whose values are compared in pairs: each round of a job measures them "
        "one after the other, in random order.",
        "rounds": "Measurements of each case per commit; a verdict needs at least 5.",
        "builds": "How often a run builds each commit, to separate the difference between builds "
        "from a change; 1: once, kept for all runs.",
        "cooldown_s": "Pause after each trial in seconds.",
        "pin_cpus": "Separate physical cores for server and load tool, if the host has enough.",
        "too_few_cores": "On a host with too few physical cores: share them, or do not measure "
        "the case there (unsupported).",
    },
    "Subject": {
        "start": _START,
        "env": f"{_ENV} For install, build and start.",
        "port": "A fixed port. Default: a free port, available as {port}.",
        "working_dir": "The folder of the commit in which its commands run; default: the root.",
        "install": "Dependencies outside the source, in a separate folder: {installed}. Kept "
        "while steps, contents of files and programs stay the same.",
        "build": "Commands, each a list of arguments, executed once per commit; the result is "
        "stored.",
        "build_timeout_s": "Total timeout in seconds.",
        "ready": "The response that shows that it is ready.",
    },
    "Install": {
        "steps": "Commands, each a list of arguments; they fill {installed}.",
        "files": "Files and folders of the commit that the steps read, or . for all; they see no "
        "others.",
        "timeout_s": "Total timeout in seconds.",
    },
    "OtherRepository": {
        "project": "The short name of a project of the same team.",
        "ref": "A tag, a branch or a hash, or an axis such as '{framework}'; resolved once when a "
        "run is created.",
    },
    "Ready": {
        "path": "The request; null: a connection is sufficient.",
        "status": "The expected status.",
        "body": "The expected body; default: any.",
        "timeout_s": "Timeout for readiness in seconds.",
    },
    "Service": {
        "start": _START,
        "env": _ENV,
        "port": "A fixed port. Default: a free port, available as {port} in start and env.",
        "count": "The number of processes, each with its own port.",
        "role": "The role whose host runs it.",
        "ready": "The readiness check.",
        "limits": "Resource limits of each process.",
    },
    "PrepareStep": {
        "run": "The command as a list of arguments, without a shell. Placeholders in braces are "
        "replaced.",
        "each": "How often it runs: once per job, commit or trial.",
        "after": "When it runs: after the build, the services or the server are ready.",
        "working_dir": "The folder of the commit in which it runs; default: that of the subject.",
        "env": "Environment variables in addition to those of the subject.",
        "timeout_s": "Time limit of each run in seconds.",
    },
    "ServiceReady": {
        "path": "The HTTP/1.1 request; default: a TCP connection is sufficient.",
        "status": "The expected status.",
        "timeout_s": "Timeout for readiness in seconds.",
    },
    "Limits": {
        "cpus": "A number of exclusive CPUs, chosen on the host.",
        "cpu_quota": "CPU time in CPUs, such as 0.5; at most cpus.",
        "memory": "Bytes, or a size such as 512 MiB.",
        "open_files": "File descriptors.",
    },
    "RoleLimits": {
        "target": "Limits of the server under test.",
        "generator": "Limits of the load tool.",
    },
    "Load": {
        "tool": "The load tool.",
        "protocol": "The protocol; h2 without tls is prior knowledge (h2c).",
        "tls": "Whether to use TLS; Pitwall creates the certificates ({cert}, {key}, {ca}).",
        "path": "The path of the request; axes in braces are replaced.",
        "random_path": "A regular expression that generates paths; path is an example.",
        "method": "The method of the request.",
        "headers": "Headers of the request; axes in braces are replaced.",
        "body": "The body of the request; axes in braces are replaced.",
        "body_bytes": "The size of a generated body, instead of body.",
        "compression": "The content codings that the client accepts, such as [gzip, br].",
        "grpc": "The gRPC method.",
        "command": "The program of the tool script, as a list of arguments.",
        "env": f"{_ENV} For the tool script.",
        "connections": "The number of busy connections.",
        "streams": "Concurrent requests on each connection, over HTTP/2, HTTP/3 and gRPC.",
        "rate": "Requests per second, sent on time whether or not responses arrive. Default: the "
        "next request follows the response.",
        "duration_s": "Duration of the load in seconds; either this or requests.",
        "requests": "The number of requests; either this or duration_s.",
        "steps": "Several loads on one server, one after the other, each measured.",
        "search": "Searches for the highest rate that meets an objective.",
        "warmup_s": "Duration of the warm-up load in seconds, which is not counted.",
        "primer_s": "Duration of a gentle load before the warm-up in seconds.",
        "request_timeout_s": "Timeout of a request in seconds.",
        "connect_timeout_s": "Timeout of connecting in seconds.",
        "quic_idle_timeout_s": "The server's idle timeout over HTTP/3 in seconds. Without a rate, "
        "oha waits for it at the end.",
        "keepalive": "Whether connections are reused.",
        "response_bytes": "Body bytes of a successful response, as received: a number or a range.",
        "expect": "The good responses; all others are errors.",
    },
    "Network": {
        "delay": "What it adds to each round trip, such as 20 ms; half in each direction.",
        "jitter": "By how much a round trip may differ from the delay, such as 2 ms.",
        "loss": "The share of packets that is lost in each direction, such as 0.5 %.",
        "rate": "Bits per second in each direction, such as 100 Mbit/s.",
    },
    "Expect": {
        "status": "A status, or a list of statuses; default: 200.",
        "volatile": "Regular expressions of the parts of the body that may vary; all else must be "
        "equal in every answer.",
    },
    "SecretReference": {"secret": "The name of a secret in the project's settings."},
    "Range": {"min": "The minimum, inclusive.", "max": "The maximum, inclusive."},
    "Grpc": {
        "call": "package.Service/Method.",
        "proto": "A file of the commit; default: server reflection.",
        "import_paths": "Folders for imports of the proto file.",
        "data": "A message, or a list of them for a stream.",
    },
    "Step": {
        "rate": "Requests a second.",
        "connections": "The number of busy connections.",
        "streams": "Concurrent requests on each connection.",
        "duration_s": "Duration of this step in seconds; either this or requests.",
        "requests": "The number of requests; either this or duration_s.",
        "warmup_s": "Duration of the warm-up before this step in seconds, which is not counted.",
    },
    "Search": {
        "objective": "The objective, such as: p99 < 50 ms and success >= 99 %.",
        "low": "The first rate in requests per second.",
        "high": "The maximum rate in requests per second.",
        "probe_s": "Duration of each probe in seconds.",
        "max_probes": "The maximum number of loads: one for a probe, or up to four at low rates.",
        "confirmations": "How often 95 % of the estimate must meet the objective.",
    },
    "Check": {
        "path": "The path of the request.",
        "method": "The method of the request.",
        "headers": "Headers of the request.",
        "body": "The body of the request.",
        "status": "The expected status; null: not checked.",
        "response_headers": "Required headers with their values.",
        "text": "The body, as text.",
        "length": "The size of the body in bytes, as received.",
        "sha256": "The SHA-256 of the body, as received, in hexadecimal.",
        "matches": "A regular expression that matches part of the body's text.",
        "encoding": "The content coding, such as gzip or identity.",
        "message_base64": "The message of a gRPC call, serialized.",
        "grpc_status": "The status of a gRPC call.",
        "timeout_s": _TIMEOUT,
    },
    "Option": {
        "labels": "Labels of this value, which reports show in separate columns.",
        "requires": "Programs that the target needs for this value.",
        "unsupported": "Why this value can no longer be measured; its row remains.",
        "replacement": "The value that replaces it.",
        "subject": "Changes of the subject.",
        "services": "Changes of the services, by name.",
        "load": "Changes of the load.",
        "limits": "Changes of the limits.",
        "network": "Changes of the network.",
        "checks": "The checks that replace those of the definition.",
        "prepare": "The prepare steps that replace those of the definition.",
    },
}
