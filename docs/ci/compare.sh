#!/usr/bin/env bash
# Measures a commit against a baseline; exits 1 on a regression, 2 where there is no answer.
set -euo pipefail
: "${PITWALL_URL:?}" "${PITWALL_TOKEN:?}" "${BENCHMARK:?}" "${HOSTS:?}"
baseline=${BASELINE:-main} contender=${CONTENDER:-$(git rev-parse HEAD)} answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

api() { # The token goes through a descriptor: a command line can be read by other users.
  curl -sS --fail-with-body --retry 5 --max-time 90 -o "$answer" "$PITWALL_URL/api/v1/$1" "${@:2}" \
    -H @<(echo "Authorization: Bearer $PITWALL_TOKEN") || { jq -r .detail "$answer" >&2; exit 2; }
}

api runs -H 'Content-Type: application/json' \
  -H "Idempotency-Key: ${KEY:-$BENCHMARK $baseline $contender}" \
  -d "$(jq -n '{benchmark: $m, baseline: $b, contender: $c, hosts: ($h / ","), until: $u}' \
    --arg m "$BENCHMARK" --arg b "$baseline" --arg c "$contender" --arg h "$HOSTS" \
    --arg u "${UNTIL:-rounds}")"
while jq -r '"\(.web_url) \(.state): \(.trials_done) of \(.trials_total) trials"' "$answer" >&2
  jq -e '.ended_at == null' "$answer" >/dev/null; do api "runs/$(jq -r .id "$answer")?wait=30"; done
jq -e '.state == "finished"' "$answer" >/dev/null || { jq -r .message "$answer" >&2; exit 2; }

api "comparisons?run=$(jq -r .id "$answer")"
jq -r '.summary, .web_url, (.cases[] | .case.label as $case | .host as $host | .metrics[]
  | [$case, $host, .metric, .baseline, .contender, .change, .verdict] | @tsv)' "$answer"
jq -e '.verdict != "regressed"' "$answer" >/dev/null
