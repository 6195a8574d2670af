#!/bin/sh
# The host key is created once and stored in the home folder, because Pitwall pins it.
set -eu
keys="$HOME/.ssh-host"
mkdir -p "$keys"
chmod 700 "$keys"
[ -f "$keys/host_key" ] || ssh-keygen -q -t ed25519 -N '' -f "$keys/host_key"
exec /usr/sbin/sshd -D -e -f /opt/agent/sshd_config
