"""The file system of the work directory, from recorded /proc/self/mountinfo files."""

from pathlib import Path

import pytest

from agents.hostagent.platform.linux.mounts import (
    NetworkFileSystem,
    find_mount,
    require_local_disk,
)

#: A workstation of a university: home directories come from a file server by autofs. Made by hand
#: in the format of proc(5).
LAB = """\
22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro
25 22 0:22 / /run rw,nosuid,nodev shared:5 - tmpfs tmpfs rw,size=3200k
90 22 0:45 / /home rw,relatime shared:40 - autofs /etc/auto.home rw,fd=5
95 90 0:50 / /home/ada rw,relatime shared:45 - nfs4 files.lab:/export/ada rw,vers=4.2
96 22 8:3 / /home/ada/scratch rw shared:46 - xfs /dev/sdb1 rw
97 22 0:51 / /mnt/two\\040words rw - cifs //nas/share rw
98 22 0:52 / /mnt/other rw - fuse.sshfs ada@other:/home/ada rw
99 22 8:9 / /mnt/over rw - nfs old:/export rw
100 99 8:9 / /mnt/over rw - btrfs /dev/sdc rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ada/.pitwall", "nfs4"),
        ("/home/adam", "autofs"),
        ("/home/ada/scratch/pitwall", "xfs"),
        ("/var/lib/pitwall", "ext4"),
        ("/mnt/two words/x", "cifs"),
        ("/mnt/other", "fuse.sshfs"),
        ("/mnt/over/x", "btrfs"),
    ],
)
def test_the_mount_of_a_folder_is_found(path: str, kind: str) -> None:
    mount = find_mount(path, LAB)
    assert mount is not None
    assert mount.type == kind


def test_nothing_is_known_without_a_list_of_mounts(tmp_path: Path) -> None:
    assert find_mount("/home", "") is None
    assert find_mount("/home", "damaged - line\n1 2\n") is None
    require_local_disk(tmp_path, "")


def test_a_work_directory_on_a_network_file_system_is_refused(tmp_path: Path) -> None:
    line = f"95 22 0:50 / {tmp_path.resolve()} rw - nfs4 files.lab:/export/ada rw"
    with pytest.raises(NetworkFileSystem) as caught:
        require_local_disk(tmp_path / "work", LAB + line)
    assert "(nfs4, files.lab:/export/ada)" in caught.value.message
    assert "Choose a folder on a local disk" in caught.value.message


def test_a_local_work_directory_is_accepted(tmp_path: Path) -> None:
    require_local_disk(tmp_path, LAB)
    require_local_disk(tmp_path)
