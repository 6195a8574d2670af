"""The words in braces that the agent fills in, and where a definition may use them. No Django."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

#: Known before a commit is built.
BUILD_WORDS = ("python", "port", "tool", "out", "rows", "trial_dir", "tree", "installed")
#: Known when a process of a trial is started, such as the address that it has to listen on.
#: `{ca}`, `{cert}` and `{key}` are the files of the job's throw-away certificates.
PROCESS_WORDS = (*BUILD_WORDS, "bind", "ca", "cert", "key")
#: All; `{address}` is where the load tool finds the server, `{probe_rate}` the rate of a probe.
AGENT_WORDS = (*PROCESS_WORDS, "address", "probe_rate")
#: Of each service; `{redis_host}`, `{redis_port}` (of its first process), `{redis_addresses}`.
SERVICE_WORDS = ("host", "port", "addresses")

_WORD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Texts (path, text) that are filled in at one moment, and the words known then."""

    texts: tuple[tuple[str, str], ...]
    words: tuple[str, ...]


def words_of(services: Iterable[str]) -> tuple[str, ...]:
    """The words that tell where these services are."""
    return tuple(f"{name}_{word}" for name in services for word in SERVICE_WORDS)


def words_in(text: str) -> set[str]:
    return set(_WORD.findall(text))


def first_problem(stages: Iterable[Stage], *, axes: Collection[str], later: Collection[str]) -> str:
    """`path: what is wrong` for the first word that is not known at its stage; else empty.

    `later` are words that other stages know, so that the message can tell apart what does not exist
    from what does not exist yet.
    """
    for stage in stages:
        for where, text in stage.texts:
            unknown = words_in(text) - set(axes) - set(stage.words)
            if unknown:
                return f"{where}: {_complaint(min(unknown), stage, later)}"
    return ""


def _complaint(word: str, stage: Stage, later: Collection[str]) -> str:
    if not stage.words:
        return f"{{{word}}} is not an axis of the matrix"
    if word in later:
        return (
            f"{{{word}}} is not known yet when this is started; known are "
            f"the axes of the matrix and {_listed(stage.words)}"
        )
    return f"{{{word}}} is neither an axis of the matrix nor one of {_listed(stage.words)}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"{{{word}}}" for word in words)
