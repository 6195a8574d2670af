#!/bin/sh
# Writes .env (for compose.yaml) and pitwall.env (for Pitwall) next to it, with new secrets.
# Overwrites nothing. The single .env of an older version becomes .env.old, and the new files get its values.
set -eu
cd "$(dirname "$0")"
if [ -e .env ] && [ ! -e pitwall.env ] && [ ! -e .env.old ] && grep -q '^PITWALL_SECRET_KEY=.' .env; then
    mv .env .env.old
fi
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

# Values of the older version replace the new ones.
take_over() {
    file=$1 line=$2
    grep -v "^${line%%=*}=" "$file" >"$file.next" || true
    printf '%s\n' "$line" >>"$file.next"
    mv "$file.next" "$file"
}
if [ -e .env.old ]; then
    grep '^[A-Z][A-Z0-9_]*=' .env.old | while IFS= read -r line; do
        name=${line%%=*}
        if [ "$name" = PITWALL_ALLOW_LOCAL_REPOSITORIES ]; then
            echo "Left out $name, which only the demo needs." >&2
        elif grep -q "^#*$name=" compose.env.example; then
            take_over .env.new "$line"
        else
            take_over pitwall.env.new "$line"
        fi
    done
    echo "Took over the values of docker/.env.old."
fi
mv .env.new .env
mv pitwall.env.new pitwall.env
echo "Wrote docker/.env and docker/pitwall.env. Keep them: stored keys are sealed with PITWALL_SECRET_KEY."
