"""Start commands in a Procfile, a Dockerfile or a script, as the argument list of a definition."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.benchmarks.proposals.source_files import SourceFiles

MOST_WORDS = 100
MOST_LENGTH = 2_000
_WEB = re.compile(r"^web:[ \t]*(\S.*)$", re.MULTILINE)
_INSTRUCTION = re.compile(r"^[ \t]*(CMD|ENTRYPOINT)[ \t]+(\S.*)$", re.MULTILINE | re.IGNORECASE)
_EXPOSE = re.compile(r"^[ \t]*EXPOSE[ \t]+(\d{1,5})\b", re.MULTILINE | re.IGNORECASE)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PORT = re.compile(r"\$\{PORT(?::-?\d*)?\}|\$PORT\b")
#: Text that only a shell understands.
_SHELL = re.compile(r"[;&|<>`$*?]")
_ANY_ADDRESS = re.compile(r"(?<![\d.])0\.0\.0\.0(?![\d.])|\[::\]")
#: A port in a separate argument, or behind an address or the name of an option.
_FIXED_PORT = re.compile(r"(?<=:)\d{2,5}$|(?<=[Pp]ort=)\d{2,5}$")
_PORT_OPTIONS = frozenset({"-p", "--port", "-port", "--http-port", "--listen-port"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCommand:
    """How to start the server; `origin` names the place in the repository."""

    argv: tuple[str, ...]
    origin: str
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_port(self) -> bool:
        return any("{port}" in text for text in (*self.argv, *self.env.values()))


def find_start_command(files: SourceFiles) -> StartCommand | None:
    """Return the command of the Procfile, otherwise that of the Dockerfile."""
    web = _WEB.search(files.get("Procfile", ""))
    if web:
        return parse_command(web[1], origin="the line web of Procfile")
    return _parse_dockerfile(files.get("Dockerfile", ""))


def find_exposed_port(files: SourceFiles) -> int | None:
    """Return the first port that the Dockerfile exposes."""
    match = _EXPOSE.search(files.get("Dockerfile", ""))
    return int(match[1]) if match and 0 < int(match[1]) < 1 << 16 else None


def parse_command(text: str, *, origin: str) -> StartCommand | None:
    """Return a command line as arguments, and its variables; None if it is empty or too long.

    A line that needs a shell is started by one. `$PORT` and fixed ports become {port}, and the
    address of all interfaces becomes {bind}.
    """
    text = text.strip()
    if not text or len(text) > MOST_LENGTH:
        return None
    plain = _PORT.sub("{port}", text)
    try:
        words = shlex.split(plain)
    except ValueError:
        words = []
    env: dict[str, str] = {}
    while words and (match := _ASSIGNMENT.fullmatch(words[0])):
        env[match[1]] = _replace_address(match[2])
        del words[0]
    if words[:1] == ["exec"]:
        del words[0]
    if _SHELL.search(plain) or not words:
        return StartCommand(argv=("sh", "-c", _replace_address(plain)), origin=origin)
    return StartCommand(argv=_replace_network(words[:MOST_WORDS]), origin=origin, env=env)


def _parse_dockerfile(text: str) -> StartCommand | None:
    """Return the last ENTRYPOINT with the last CMD as its arguments, as Docker does."""
    found = {name.upper(): value.strip() for name, value in _INSTRUCTION.findall(text)}
    entry, command = found.get("ENTRYPOINT", ""), found.get("CMD", "")
    lists = [_parse_list(each) for each in (entry, command) if each]
    origin = " and ".join(name for name in ("ENTRYPOINT", "CMD") if name in found)
    if lists and all(lists):
        argv = [word for each in lists for word in each or ()]
        return StartCommand(
            argv=_replace_network(argv[:MOST_WORDS]), origin=f"{origin} of Dockerfile"
        )
    shell = entry or command
    return parse_command(shell, origin=f"{origin} of Dockerfile") if shell else None


def _parse_list(value: str) -> list[str] | None:
    """Return the words of the JSON form of an instruction; None for its shell form."""
    try:
        words = json.loads(value[:MOST_LENGTH])
    except (ValueError, RecursionError):
        return None
    is_list = isinstance(words, list) and all(isinstance(each, str) for each in words)
    return [_PORT.sub("{port}", each) for each in words] if is_list else None


def _replace_network(words: list[str]) -> tuple[str, ...]:
    replaced = [_FIXED_PORT.sub("{port}", _replace_address(word)) for word in words]
    for place, word in enumerate(replaced[1:], start=1):
        if words[place - 1] in _PORT_OPTIONS and word.isdecimal():
            replaced[place] = "{port}"
    return tuple(replaced)


def _replace_address(text: str) -> str:
    return _ANY_ADDRESS.sub("{bind}", text)
