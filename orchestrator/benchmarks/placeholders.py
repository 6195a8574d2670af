"""Placeholders in braces of the agent, and where a definition may use them. No Django."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

#: Known before a commit is built.
BUILD_WORDS = ("python", "port", "tool", "out", "rows", "trial_dir", "tree", "installed")
#: Known when a process of a trial starts, such as the address to listen on. `{ca}`, `{cert}` and
#: `{key}` are the files of the job's temporary certificates, `{files}` those of the definition.
PROCESS_WORDS = (
    *BUILD_WORDS, "bind", "ca", "cert", "key", "files", "job_data", "commit_data", "trial_data",
)  # fmt: skip
#: All: `{address}` is the server's address for the load tool, `{probe_rate}` the rate of a probe.
AGENT_WORDS = (*PROCESS_WORDS, "address", "probe_rate")
#: Of each service: `{redis_host}`, `{redis_port}` (of its first process), `{redis_addresses}`.
SERVICE_WORDS = ("host", "port", "addresses")

#: Not of a prepare step: they belong to other processes.
_NOT_OF_STEPS = ("port", "tool", "out", "rows")

_WORD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Texts (path, text) that are replaced at one moment, and the placeholders known then."""

    texts: tuple[tuple[str, str], ...]
    words: tuple[str, ...]


def list_service_placeholders(services: Iterable[str]) -> tuple[str, ...]:
    """Return the placeholders for the addresses of these services."""
    return tuple(f"{name}_{word}" for name in services for word in SERVICE_WORDS)


def list_repository_placeholders(repositories: Iterable[str]) -> tuple[str, ...]:
    """Return the placeholders for the folders of these repositories, such as `framework_tree`."""
    return tuple(f"{name}_tree" for name in repositories)


def list_prepare_words(after: str, services: Iterable[str]) -> tuple[str, ...]:
    """Return the placeholders that are known in a prepare step after this event."""
    words = tuple(word for word in PROCESS_WORDS if word not in _NOT_OF_STEPS)
    started = () if after == "build" else list_service_placeholders(services)
    return (*words, *started, *(("port",) if after == "server" else ()))


def find_placeholders(text: str) -> set[str]:
    return set(_WORD.findall(text))


def find_placeholder_problem(
    stages: Iterable[Stage], *, axes: Collection[str], later: Collection[str]
) -> str:
    """Return `path: problem` for the first placeholder that is unknown at its stage; else empty.

    `later` are placeholders of other stages, so that the message can distinguish those that do not
    exist from those that do not exist yet.
    """
    for stage in stages:
        for where, text in stage.texts:
            unknown = find_placeholders(text) - set(axes) - set(stage.words)
            if unknown:
                return f"{where}: {_describe_problem(min(unknown), stage, later)}"
    return ""


def _describe_problem(word: str, stage: Stage, later: Collection[str]) -> str:
    if not stage.words:
        return f"{{{word}}} is not an axis of the matrix"
    if word in later:
        return (
            f"{{{word}}} is not available yet at this point; available are "
            f"the axes of the matrix and {_format_placeholders(stage.words)}"
        )
    return (
        f"{{{word}}} is neither an axis of the matrix nor one of "
        f"{_format_placeholders(stage.words)}"
    )


def _format_placeholders(words: Iterable[str]) -> str:
    return ", ".join(f"{{{word}}}" for word in words)
