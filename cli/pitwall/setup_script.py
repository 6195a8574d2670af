"""The shell script that prepares a Linux host for Pitwall, and removes what it installed.

The command line runs it, and the page of a host shows it.
"""

from __future__ import annotations

import re
import shlex

DEFAULT_ACCOUNT = "pitwall"
#: Settings that the agent's tuning changes (agents/hostagent/platform/linux/knobs.py). Files below
#: /proc/sys are not among them: only root can write those, whatever their mode is.
TUNING_FILES = (
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpufreq/boost",
)
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_PUBLIC_KEY = re.compile(
    r"[a-z0-9@.-]{3,60} [A-Za-z0-9+/]{20,12000}={0,3}( [A-Za-z0-9@._-]{0,100})?"
)


def build_setup_script(account: str, public_key: str = "", *, tuning: bool = True) -> str:
    """Return the script. `public_key`: a line for authorized_keys, or "".

    `tuning`: whether the account may change the settings of TUNING_FILES. ValueError, with the
    reason, for a name or key that is none.
    """
    if not _ACCOUNT.fullmatch(account):
        raise ValueError(f"{account!r} is no name of an account: use letters, digits, -, . and _")
    if public_key and not _PUBLIC_KEY.fullmatch(public_key):
        raise ValueError("this is no public key: give one line such as `ssh-ed25519 AAAA… name`")
    values = {
        "account": account,
        "public_key": public_key,
        "tuning": "yes" if tuning else "no",
        "tuning_files": " ".join(TUNING_FILES),
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    return _SCRIPT.replace("@VALUES@\n", "\n".join([*lines, ""]))


_SCRIPT = r"""#!/bin/sh
# Prepares a Linux host with systemd for Pitwall. Run it as root. It may run again at any time.
# "sh FILE undo" removes what it installed.
set -eu

@VALUES@
group=pitwall-tuning
state=/var/lib/pitwall-setup
limits=/etc/security/limits.d/pitwall.conf
tmpfiles=/etc/tmpfiles.d/pitwall.conf

say() { printf '%s\n' "$1"; }
fail() { printf 'error: %s\n' "$1" >&2; exit 1; }
exists() { id "$account" >/dev/null 2>&1; }
record() { mkdir -p "$state"; printf '%s\n' "$account" > "$state/$1"; }
recorded() { [ -f "$state/$1" ] && [ "$(cat "$state/$1")" = "$account" ]; }
home() { getent passwd "$account" | cut -d: -f6; }
run_as_account() { runuser -u "$account" -- sh -c "$1" sh "$(home)/.ssh" "$public_key"; }

# Writes standard input to the file $1 if it differs; returns 1 if it does not.
write() {
  content=$(cat)
  if [ -f "$1" ] && [ "$(cat "$1")" = "$content" ]; then
    say "unchanged: $1"
    return 1
  fi
  mkdir -p "$(dirname "$1")"
  printf '%s\n' "$content" > "$1"
  chmod 644 "$1"
  say "written: $1"
}

check_system() {
  [ "$(id -u)" = 0 ] || fail "run this script as root"
  [ -d /run/systemd/system ] || fail "this host does not run systemd"
  [ -f /sys/fs/cgroup/cgroup.controllers ] ||
    fail "cgroup v2 is off: boot with systemd.unified_cgroup_hierarchy=1"
  command -v busctl >/dev/null || fail "busctl is missing: install the package systemd completely"
  [ "$account" = root ] || [ -f /usr/lib/systemd/user/dbus.socket ] ||
    fail "install dbus-user-session (Debian, Ubuntu) or dbus-common (Fedora), and run it again"
}

# A login without a password. Pitwall logs in with its key.
install_account() {
  if exists; then
    say "unchanged: account $account"
  else
    useradd --create-home --shell /bin/sh --password '*' "$account"
    record account
    say "created: account $account"
  fi
  [ -z "$public_key" ] || run_as_account '
    umask 077
    mkdir -p "$1"
    file=$1/authorized_keys
    grep -qxF -- "$2" "$file" 2>/dev/null || printf "%s\n" "$2" >> "$file"'
}

# 10,000 connections need more than the usual 1,024 files.
install_limits() {
  write "$limits" <<END || true
$account soft nofile 65536
$account hard nofile 65536
END
}

# The systemd of the account runs without a login, and may use all controllers.
# Then the agent gets a control group that nothing else changes.
install_delegation() {
  uid=$(id -u "$account")
  if write "/etc/systemd/system/user@$uid.service.d/pitwall.conf" <<END
[Service]
Delegate=cpu cpuset io memory pids
END
  then
    systemctl daemon-reload
    systemctl try-restart "user@$uid.service"
  fi
  if [ ! -e "/var/lib/systemd/linger/$account" ]; then
    loginctl enable-linger "$account"
    record linger
  fi
  systemctl start "user@$uid.service"
}

# Members of the group may change these settings, and nothing else of root.
install_tuning() {
  getent group "$group" >/dev/null || groupadd --system "$group"
  usermod --append --groups "$group" "$account"
  printf '%s\n' "$tuning_files" | tr ' ' '\n' | sed "s|.*|z & 0664 root $group|" |
    { write "$tmpfiles" || true; }
  systemd-tmpfiles --create "$tmpfiles"
}

undo_tuning() {
  rm -f "$tmpfiles"
  for file in $tuning_files; do
    [ ! -e "$file" ] || { chown root:root "$file"; chmod 644 "$file"; }
  done
  ! getent group "$group" >/dev/null || groupdel "$group"
}

undo_account() {
  exists || return 0
  uid=$(id -u "$account")
  [ -z "$public_key" ] || recorded account || run_as_account '
    keys=$(grep -vxF -- "$2" "$1/authorized_keys" || true)
    printf "%s\n" "$keys" > "$1/authorized_keys"'
  ! recorded linger || loginctl disable-linger "$account"
  rm -f "/etc/systemd/system/user@$uid.service.d/pitwall.conf"
  rmdir "/etc/systemd/system/user@$uid.service.d" 2>/dev/null || true
  systemctl daemon-reload
  ! recorded account || {
    systemctl stop "user@$uid.service"
    loginctl terminate-user "$account" 2>/dev/null || true
    say "the home folder of $account stays"
    userdel "$account"
  }
}

check_system
case "${1:-install}" in
  install)
    [ "$account" = root ] || install_account
    install_limits
    [ "$account" = root ] || install_delegation
    [ "$account" = root ] || [ "$tuning" = no ] || install_tuning
    say "Done. Now check this host on its page in Pitwall."
    ;;
  undo)
    [ "$account" = root ] || undo_tuning
    [ "$account" = root ] || undo_account
    rm -rf "$limits" "$state"
    say "Removed."
    ;;
  *) fail "the only argument is undo" ;;
esac
"""
