"""The version of a load tool, and what it was built with."""

import os
from pathlib import Path

import pytest

from agents.hostagent.platform.program_versions import (
    find_version,
    read_jdk_version,
    read_module_version,
    read_tool_features,
    read_tool_version,
)
from tests.support.programs import tool

pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs are shell scripts here")


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("oha 1.14.0\n", "1.14.0"),
        ("git version 2.39.5 (Apple Git-154)", "2.39.5"),
        ("wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer", "4.1.0"),
        ("wrk 4.1.0 [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk", "4.1.0"),
        ("h2load nghttp2/1.52.0", "1.52.0"),
        ("k6 v0.49.0 (commit/4f7f1a1, go1.21.6, linux/amd64)", "0.49.0"),
        ("nginx version: nginx/1.22.1", "1.22.1"),
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", "7.0.15"),
        ("OpenSSL 1.1.1w  11 Sep 2023", "1.1.1w"),
        ("OpenSSL 3.0.17 1 Jul 2025 (Library: OpenSSL 3.0.17 1 Jul 2025)", "3.0.17"),
        ("go version go1.22.0 linux/amd64", "1.22.0"),
        ('openjdk version "21" 2023-09-19\nOpenJDK Runtime', "21"),
        ('openjdk version "17.0.9" 2023-10-17', "17.0.9"),
        ("v20.11.1", "20.11.1"),
        ("rustc 1.75.0 (82e1608df 2023-12-21)", "1.75.0"),
        ("ruby 3.1.2p20 (2022-04-12 revision 4491bb740a)", "3.1.2p"),
        ("PHP 8.2.7 (cli) (built: Jun  9 2023 19:37:27) (NTS)", "8.2.7"),
        ("dev build", None),
    ],
)
def test_version_is_found_in_the_output_of_programs(output: str, version: str | None) -> None:
    assert find_version(output) == version


def script(folder: Path, text: str) -> Path:
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("name", "major"),
    [("oha", "1."), ("ghz", "0.93."), ("k6", "1."), ("wrk", "4."), ("h2load", "1.")],
)
def test_version_of_each_load_tool_is_found(name: str, major: str) -> None:
    version = read_tool_version(name, tool(name))
    assert version is not None
    assert version.startswith(major)


@pytest.mark.parametrize("text", ["echo dev", "echo 1.2.3; exit 1", ""])
def test_version_is_unknown_if_the_output_has_none(tmp_path: Path, text: str) -> None:
    assert read_tool_version("ghz", script(tmp_path, text)) is None


def test_a_program_that_does_not_respond_has_no_version(tmp_path: Path) -> None:
    assert read_tool_version("oha", script(tmp_path, "exec sleep 60"), timeout_s=0.2) is None


BLOB = b"\xff Go buildinf:\x08\x02" + bytes(16) + b"\x08go1.26.8\x50"


@pytest.mark.parametrize(
    ("content", "version"),
    [
        (bytes(32) + BLOB + b"path\tx\nmod\texample.org/x\tv2.3.4\th1:a=\n", "2.3.4"),
        (bytes(32) + BLOB + b"path\tx\nmod\texample.org/x\tv2.3.5-rc1\th1:a=\n", "2.3.5"),
        # Built in a checkout, where no version was asked for.
        (bytes(32) + BLOB + b"path\tx\nmod\texample.org/x\t(devel)\t\n", None),
        # A dependency's version is not the program's.
        (bytes(32) + BLOB + b"path\tx\ndep\texample.org/y\tv9.9.9\th1:a=\n", None),
        # The mark stands in the code of programs that look for it, there at any place.
        (bytes(7) + BLOB + b"\nmod\tno\tv9.9.9\t" + bytes(5000) + BLOB, None),
        (bytes(32) + BLOB + bytes(5000) + b"\nmod\texample.org/x\tv9.9.9\t", None),
        (b"", None),
    ],
)
def test_version_is_read_from_go_build_information(
    tmp_path: Path, content: bytes, version: str | None
) -> None:
    program = tmp_path / "program"
    program.write_bytes(content)
    assert read_module_version(program) == version


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ('JAVA_VERSION="17.0.15"\nLIBC="gnu"\n', "17.0.15"),
        ('IMPLEMENTOR="Temurin"\nJAVA_VERSION="21"\n', "21"),
        ('JAVA_VERSION="1.8.0_392"\n', "1.8.0"),
        ('JAVA_VERSION=""\n', None),
        ("LIBC=gnu\n", None),
    ],
)
def test_version_of_a_jdk_is_read_from_its_release_file(
    tmp_path: Path, release: str, version: str | None
) -> None:
    (tmp_path / "release").write_text(release)
    assert read_jdk_version(tmp_path / "bin" / "java") == version


def test_a_pipe_in_place_of_the_release_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "release")
    assert read_jdk_version(tmp_path / "bin" / "java") is None


def test_the_output_of_a_program_takes_precedence_over_go_build_information(tmp_path: Path) -> None:
    program = script(tmp_path, "echo ghz 1.2.3; exit")
    content = program.read_bytes().ljust(48) + BLOB + b"path\tx\nmod\tx\tv2.3.4\t"
    program.write_bytes(content)
    assert (read_module_version(program), read_tool_version("ghz", program)) == ("2.3.4", "1.2.3")


def test_http3_support_of_oha_is_detected(tmp_path: Path) -> None:
    refuses = script(tmp_path, "echo has not been built with HTTP/3 support >&2; exit 1")
    assert read_tool_features("oha", refuses) == []
    assert read_tool_features("oha", tool("oha")) == ["http3"]


def test_unknown_features_are_not_guessed(tmp_path: Path) -> None:
    assert read_tool_features("wrk", script(tmp_path, "exit 0")) is None
    assert read_tool_features("oha", tmp_path / "absent") is None
    assert read_tool_features("oha", script(tmp_path, "exec sleep 60"), timeout_s=0.2) is None
