"""The disk of the virtual machine: a minimal Debian with systemd, built once per recipe.

It needs no root. All of its files belong to the machine's root.
"""

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from devstack.places import get_tools_cache
from orchestrator.transport.keys import KeyPair, generate_key, parse_private_key

PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "unshare": "util-linux",
}
RELEASE = "bookworm"
PACKAGES = (
    "systemd,systemd-sysv,udev,dbus,dbus-user-session,libpam-systemd,openssh-server,python3,"
    "iproute2,linux-image-cloud-amd64"
)
BUILD_TIMEOUT_S = 600
_FILL = """
set -e
mkdir root
tar -x --no-same-owner --exclude './dev/*' -f root.tar -C root
install -d -m 700 root/root/.ssh
cp key.pub root/root/.ssh/authorized_keys
printf '[Match]\\nName=en* eth*\\n[Network]\\nDHCP=yes\\n' > root/etc/systemd/network/all.network
ln -s /lib/systemd/system/systemd-networkd.service root/etc/systemd/system/multi-user.target.wants/
echo vm > root/etc/hostname
: > root/etc/machine-id
cp root/boot/vmlinuz-* kernel
cp root/boot/initrd.img-* initrd
mke2fs -q -t ext4 -d root disk.img 2G
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The files of a machine. `key` logs in as root; `host_key` is the machine's own."""

    folder: Path
    key: KeyPair
    host_key: str


def find_missing_packages() -> list[str]:
    """Return the Debian packages whose programs are missing here."""
    path = "/usr/sbin:/sbin"
    return [
        package
        for name, package in PROGRAMS.items()
        if shutil.which(name) is None and shutil.which(name, path=path) is None
    ]


def load_image() -> Image:
    """Return the image of this recipe; build it if it is not in the user's cache."""
    recipe = hashlib.sha256("\n".join([RELEASE, PACKAGES, _FILL]).encode()).hexdigest()[:16]
    folder = get_tools_cache().parent / "vm" / recipe
    if not (folder / "disk.img").exists():
        _build(folder)
    private = (folder / "key").read_text()
    host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    return Image(folder=folder, key=parse_private_key(private), host_key=host_key)


def _build(folder: Path) -> None:
    """Build in a folder next to it, so that an interrupted build leaves no image."""
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    key = generate_key()
    (part / "key").touch(mode=0o600)
    (part / "key").write_text(key.private_openssh)
    (part / "key.pub").write_text(f"{key.public_openssh}\n")
    _run(part, "mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, "root.tar")
    _run(part, "unshare", "--map-root-user", "sh", "-c", f"PATH=$PATH:/sbin:/usr/sbin\n{_FILL}")
    shutil.copy(part / "root/etc/ssh/ssh_host_ed25519_key.pub", part / "host_key.pub")
    shutil.rmtree(part / "root")
    (part / "root.tar").unlink()
    part.rename(folder)


def _run(folder: Path, *argv: str) -> None:
    done = subprocess.run(
        argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=BUILD_TIMEOUT_S
    )
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]} failed: {done.stderr.decode(errors='replace')[-2000:]}")
