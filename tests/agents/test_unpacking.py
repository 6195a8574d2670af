import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.builds import archive as archives
from agents.hostagent.builds.archive import unpack
from agents.hostagent.errors import BuildFailed


def member(name: str, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    return member(name, type=kind, linkname=target)


def write_tar(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for item in members:
            item.size = 4 if item.isfile() else 0
            archive.addfile(item, io.BytesIO(b"text") if item.isfile() else None)
    return path


def test_unpacking_writes_files_folders_and_links_inside(tmp_path: Path) -> None:
    source = write_tar(
        tmp_path / "good.tar.gz",
        member("src", type=tarfile.DIRTYPE),
        member("src/run.sh", mode=0o4777),
        member("deep/er/plain.txt", mode=0o600),
        link("src/alias", "../deep/er/plain.txt"),
    )
    unpack(source, tmp_path / "tree")
    assert (tmp_path / "tree/src/alias").read_text() == "text"
    assert os.access(tmp_path / "tree/src/run.sh", os.X_OK)
    assert (tmp_path / "tree/src/run.sh").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "tree/deep/er/plain.txt").stat().st_mode & 0o7777 == 0o644


UNSAFE = {
    "absolute": [member("/etc/evil")],
    "parent": [member("../evil")],
    "parent inside": [member("a/../../evil")],
    "absolute link": [link("a", "/etc/passwd")],
    "link to outside": [link("a", "../../evil")],
    "through a link": [link("a", ".."), member("a/evil")],
    "link through a link": [
        member("a/b", type=tarfile.DIRTYPE),
        link("a/b/up", "../.."),
        link("a/b/out", "up/../evil"),
    ],
    "through a link through a link": [
        member("a/b", type=tarfile.DIRTYPE),
        link("a/b/up", "../.."),
        link("a/b/out", "up/.."),
        member("a/b/out/evil"),
    ],
    "over a link": [link("a", "b"), member("a")],
    "twice": [member("a"), member("a")],
    "hard link": [member("a"), link("b", "a", tarfile.LNKTYPE)],
    "device": [member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "pipe": [member("pipe", type=tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("members", UNSAFE.values(), ids=UNSAFE)
def test_unpacking_refuses_paths_outside_and_special_files(
    members: list[tarfile.TarInfo], tmp_path: Path
) -> None:
    source = write_tar(tmp_path / "bad.tar.gz", *members)
    (tmp_path / "here").mkdir()
    with pytest.raises(BuildFailed, match=r"bad\.tar\.gz"):
        unpack(source, tmp_path / "here/tree")
    assert not (tmp_path / "here/tree").exists()
    assert not list(tmp_path.rglob("evil"))


def test_unpacking_refuses_an_archive_that_was_cut_short(tmp_path: Path) -> None:
    source = write_tar(tmp_path / "cut.tar.gz", member("a"), member("b"))
    source.write_bytes(source.read_bytes()[:60])
    with pytest.raises(BuildFailed, match=r"cut\.tar\.gz"):
        unpack(source, tmp_path / "tree")


def test_unpacking_refuses_an_archive_that_is_damaged_inside(tmp_path: Path) -> None:
    source = write_tar(tmp_path / "damaged.tar.gz", *(member(f"f{n}") for n in range(200)))
    whole = bytearray(source.read_bytes())
    whole[40:60] = bytes(20)
    source.write_bytes(whole)
    with pytest.raises(BuildFailed, match=r"damaged\.tar\.gz"):
        unpack(source, tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize(
    ("limit", "most"), [("MAX_BYTES", 5), ("MAX_MEMBERS", 2)], ids=["bytes", "members"]
)
def test_unpacking_refuses_a_decompression_bomb(
    limit: str, most: int, tmp_path: Path, monkeypatch: Any
) -> None:
    source = write_tar(tmp_path / "bomb.tar.gz", member("a"), member("b"), member("c"))
    monkeypatch.setattr(archives, limit, most)
    with pytest.raises(BuildFailed, match="it has more than"):
        unpack(source, tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_unpacking_refuses_other_formats(tmp_path: Path) -> None:
    """One that unpacks a thousandfold, such as xz, is none that we send."""
    with tarfile.open(tmp_path / "other.tar.gz", "w:xz") as archive:
        archive.addfile(member("a"))
    with pytest.raises(BuildFailed, match=r"other\.tar\.gz"):
        unpack(tmp_path / "other.tar.gz", tmp_path / "tree")
