#!/bin/sh
# Writes .env beside compose.yaml from env.example, with secrets of its own. Overwrites nothing.
set -eu
cd "$(dirname "$0")"
if [ -e .env ]; then
    echo "docker/.env is there already: its secrets open what the database holds." >&2
    exit 1
fi
secret() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
umask 077
sed -e "s/^PITWALL_SECRET_KEY=.*/PITWALL_SECRET_KEY=$(secret)/" \
    -e "s/^POSTGRES_PASSWORD=.*/POSTGRES_PASSWORD=$(secret)/" env.example >.env.new
mv .env.new .env
echo "Wrote docker/.env. Keep it: stored keys are sealed with its PITWALL_SECRET_KEY."
