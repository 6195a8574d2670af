#!/bin/sh
# Writes .env (for compose.yaml) and pitwall.env (for Pitwall) next to it, with secrets of their own.
# Overwrites nothing.
set -eu
cd "$(dirname "$0")"
for file in .env pitwall.env; do
    if [ -e "$file" ]; then
        echo "docker/$file is there already: its secrets open what the database holds." >&2
        exit 1
    fi
done
secret() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
umask 077
sed -e "s/^POSTGRES_PASSWORD=.*/POSTGRES_PASSWORD=$(secret)/" \
    -e "s/^PITWALL_OWNER_PASSWORD=.*/PITWALL_OWNER_PASSWORD=$(secret)/" \
    -e "s/^PITWALL_DATABASE_PASSWORD=.*/PITWALL_DATABASE_PASSWORD=$(secret)/" \
    -e "s/^REDIS_PASSWORD=.*/REDIS_PASSWORD=$(secret)/" compose.env.example >.env.new
sed -e "s/^PITWALL_SECRET_KEY=.*/PITWALL_SECRET_KEY=$(secret)/" env.example >pitwall.env.new
mv .env.new .env
mv pitwall.env.new pitwall.env
echo "Wrote docker/.env and docker/pitwall.env. Keep them: stored keys are sealed with PITWALL_SECRET_KEY."
