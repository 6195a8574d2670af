"""How servers in Python, Node.js, Go, Rust and Java are built and started, from their files."""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.hostagent.protocol import WHOLE_COMMIT
from orchestrator.benchmarks.proposals.commands import StartCommand, parse_command
from orchestrator.benchmarks.proposals.source_files import SourceFiles, load_package

Command = tuple[str, ...]

_APPLICATION = re.compile(
    r"^(\w{1,60})\s{0,4}=\s{0,4}(FastAPI|Starlette|Litestar|Quart|Flask|Sanic|web\.Application)\(",
    re.MULTILINE,
)
_ASGI = frozenset({"FastAPI", "Starlette", "Litestar", "Quart"})
_PYTHON_FILES = (
    "main.py", "app.py", "server.py", "asgi.py", "wsgi.py", "application.py", "api.py", "run.py",
    "app/main.py", "app/__init__.py", "src/main.py", "src/app.py",
)  # fmt: skip
#: Programs of Python packages, which an installation has in its own folder.
_PYTHON_PROGRAMS = frozenset(
    {"gunicorn", "uvicorn", "hypercorn", "daphne", "granian", "waitress-serve", "flask", "fastapi"}
)
#: Lines of requirements that read more of the commit: other requirements, or packages in folders.
_OTHER_FILES = re.compile(
    r"^[ \t]{0,20}(-[rce]|--(requirement|constraint|editable)\b|\.)", re.MULTILINE
)
#: The time for a dotted key of TOML grows with the square of its length.
_MOST_DOTS = 3_000
_ARTIFACT = re.compile(r"<artifactId>\s{0,20}([\w.-]{1,100})\s{0,20}</artifactId>")
_VERSION = re.compile(r"<version>\s{0,20}([\w.-]{1,100})\s{0,20}</version>")
_GRADLE_NAME = re.compile(r"rootProject\.name\s{0,4}=\s{0,4}['\"]([\w.-]{1,100})['\"]")
_GRADLE_VERSION = re.compile(r"^version\s{0,4}=\s{0,4}['\"]([\w.-]{1,100})['\"]", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """How a language installs, builds and starts a server; `start` is its usual command.

    `origins`: the field of a definition and the file that it was derived from.
    """

    language: str
    program: str
    install: tuple[Command, ...] = ()
    install_files: tuple[str, ...] = ()
    build: tuple[Command, ...] = ()
    start: StartCommand | None = None
    origins: tuple[tuple[str, str], ...] = ()
    env: dict[str, str] = field(default_factory=dict)


def find_toolchain(files: SourceFiles) -> Toolchain | None:
    """Return the first language whose package file, or whose server, is at the root."""
    for find in _LANGUAGES:
        toolchain = find(files)
        if toolchain is not None:
            return toolchain
    return None


def use_installation(toolchain: Toolchain | None, argv: Sequence[str]) -> Command:
    """Return a command with the programs of the installation, where a Python server has one."""
    program, *rest = argv
    if toolchain is None or toolchain.language != "Python":
        return tuple(argv)
    name = program.rpartition("/")[2]
    if re.fullmatch(r"python[0-9.]*", name):
        return ("{installed}/bin/python" if toolchain.install else "{python}", *rest)
    if name in _PYTHON_PROGRAMS and toolchain.install:
        return (f"{{installed}}/bin/{name}", *rest)
    return tuple(argv)


def _find_python(files: SourceFiles) -> Toolchain | None:
    dependencies, origin = _list_python_dependencies(files)
    if not origin and not any(path in files for path in (*_PYTHON_FILES, "manage.py")):
        return None
    pip = ("{installed}/bin/pip", "install", "--quiet")
    install: tuple[Command, ...] = ()
    read = origin
    if origin == "requirements.txt":
        read = WHOLE_COMMIT if _OTHER_FILES.search(files[origin]) else origin
        install = (_VENV, (*pip, "-r", "{tree}/requirements.txt"))
    elif dependencies:
        install = (_VENV, (*pip, "--", *dependencies))
    start = _find_python_start(files, dependencies)
    return Toolchain(
        language="Python",
        program="python3",
        install=install,
        install_files=(read,) if install else (),
        start=start,
        origins=(("subject.install", origin),) if install else (),
    )


_VENV: Command = ("python3", "-m", "venv", "{installed}")


def _list_python_dependencies(files: SourceFiles) -> tuple[list[str], str]:
    """Return the dependencies and their file; empty if there is none."""
    if "requirements.txt" in files:
        lines = (line.partition("#")[0].strip() for line in files["requirements.txt"].split("\n"))
        return [line for line in lines if line and not line.startswith("-")], "requirements.txt"
    project = _load_toml(files.get("pyproject.toml", "")).get("project")
    listed = project.get("dependencies") if isinstance(project, dict) else None
    if isinstance(listed, list):
        words = [each for each in listed if isinstance(each, str) and len(each) < 200]
        return words[:100], "pyproject.toml"
    return [], "pyproject.toml" if "pyproject.toml" in files else ""


def _find_python_start(files: SourceFiles, dependencies: list[str]) -> StartCommand | None:
    names = {re.split(r"[^a-z0-9_-]", each.lower(), maxsplit=1)[0] for each in dependencies}
    for path in _PYTHON_FILES:
        match = _APPLICATION.search(files.get(path, ""))
        if match:
            return _start_application(path, match[1], match[2], names)
    if "manage.py" in files:
        words = ("manage.py", "runserver", "--noreload", "{bind}:{port}")
        return StartCommand(argv=("python", *words), origin="manage.py")
    plain = next((path for path in ("server.py", "main.py", "app.py") if path in files), None)
    if plain is None:
        return None
    options = [
        word
        for name, value in (("--bind", "{bind}"), ("--host", "{bind}"), ("--port", "{port}"))
        if f'"{name}"' in files[plain] or f"'{name}'" in files[plain]
        for word in (name, value)
    ]
    return StartCommand(argv=("python", plain, *options), origin=plain)


def _start_application(path: str, name: str, kind: str, packages: set[str]) -> StartCommand:
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    place, origin = f"{module}:{name}", f"{name} = {kind}(…) in {path}"
    network = ("--host", "{bind}", "--port", "{port}")
    if kind in _ASGI:
        server = "hypercorn" if "hypercorn" in packages and "uvicorn" not in packages else "uvicorn"
        listen = ("--bind", "{bind}:{port}") if server == "hypercorn" else network
        return StartCommand(argv=(server, place, *listen), origin=origin)
    if "gunicorn" in packages:
        argv = ("gunicorn", "--bind", "{bind}:{port}", place)
        return StartCommand(argv=argv, origin=origin)
    if kind == "Flask":
        return StartCommand(argv=("flask", "--app", place, "run", *network), origin=origin)
    return StartCommand(argv=("python", path), origin=origin)


def _find_node(files: SourceFiles) -> Toolchain | None:
    if "package.json" not in files:
        return None
    package = load_package(files)
    scripts = package.get("scripts")
    commands = scripts if isinstance(scripts, dict) else {}
    install = ("npm", "ci") if "package-lock.json" in files else ("npm", "install")
    build = [install, *([("npm", "run", "build")] if commands.get("build") else [])]
    start, main = commands.get("start"), package.get("main")
    command = None
    if isinstance(start, str):
        command = parse_command(start, origin="scripts.start of package.json")
    elif isinstance(main, str) and len(main) < 200:
        command = StartCommand(argv=("node", main), origin="main of package.json")
    elif plain := next((each for each in ("server.js", "index.js") if each in files), None):
        command = StartCommand(argv=("node", plain), origin=plain)
    return Toolchain(
        language="Node.js",
        program="node",
        build=tuple(build),
        start=command,
        origins=(("subject.build", "package.json"),),
    )


def _find_go(files: SourceFiles) -> Toolchain | None:
    if "go.mod" not in files:
        return None
    package = "." if "main.go" in files or "cmd/server/main.go" not in files else "./cmd/server"
    return Toolchain(
        language="Go",
        program="go",
        build=(("go", "build", "-o", "pitwall-server", package),),
        start=StartCommand(argv=("./pitwall-server",), origin="go.mod"),
        origins=(("subject.build", "go.mod"),),
    )


def _find_rust(files: SourceFiles) -> Toolchain | None:
    if "Cargo.toml" not in files:
        return None
    package = _load_toml(files["Cargo.toml"]).get("package")
    name = package.get("name") if isinstance(package, dict) else None
    locked = ("--locked",) if "Cargo.lock" in files else ()
    start = None
    if isinstance(name, str) and re.fullmatch(r"[\w-]{1,100}", name):
        start = StartCommand(argv=(f"target/release/{name}",), origin="Cargo.toml")
    return Toolchain(
        language="Rust",
        program="cargo",
        build=(("cargo", "build", "--release", *locked),),
        start=start,
        origins=(("subject.build", "Cargo.toml"),),
    )


def _find_maven(files: SourceFiles) -> Toolchain | None:
    if "pom.xml" not in files:
        return None
    text = files["pom.xml"]
    # The artefact itself, not its parent, its dependencies or its plugins.
    before, opening, rest = text.partition("<parent>")
    head = before + (rest.partition("</parent>")[2] if opening else "")
    for section in ("<dependencies>", "<dependencyManagement>", "<build>", "<profiles>"):
        head = head.partition(section)[0]
    name, version = _ARTIFACT.search(head), _VERSION.search(head)
    jar = f"target/{name[1]}-{version[1]}.jar" if name and version else ""
    return Toolchain(
        language="Java",
        program="java",
        build=(("mvn", "--quiet", "--batch-mode", "package", "-DskipTests"),),
        start=_start_jar(jar, "pom.xml", is_spring="spring-boot" in text),
        origins=(("subject.build", "pom.xml"),),
    )


def _find_gradle(files: SourceFiles) -> Toolchain | None:
    build = next((each for each in ("build.gradle", "build.gradle.kts") if each in files), None)
    if build is None:
        return None
    settings = files.get("settings.gradle", "") or files.get("settings.gradle.kts", "")
    is_spring = "org.springframework.boot" in files[build]
    name, version = _GRADLE_NAME.search(settings), _GRADLE_VERSION.search(files[build])
    suffix = f"-{version[1]}" if version else ""
    jar = f"build/libs/{name[1]}{suffix}.jar" if name else ""
    program = "./gradlew" if "gradlew" in files else "gradle"
    return Toolchain(
        language="Java",
        program="java",
        build=((program, "--no-daemon", "--quiet", "bootJar" if is_spring else "build"),),
        start=_start_jar(jar, build, is_spring=is_spring),
        origins=(("subject.build", build),),
    )


def _start_jar(jar: str, origin: str, *, is_spring: bool) -> StartCommand | None:
    if not jar:
        return None
    options = ("--server.port={port}", "--server.address={bind}") if is_spring else ()
    return StartCommand(argv=("java", "-jar", jar, *options), origin=origin)


def _load_toml(text: str) -> dict[str, Any]:
    if text.count(".") > _MOST_DOTS:
        return {}
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


_LANGUAGES: tuple[Callable[[SourceFiles], Toolchain | None], ...] = (
    _find_go, _find_rust, _find_maven, _find_gradle, _find_node, _find_python,
)  # fmt: skip
