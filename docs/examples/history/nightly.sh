#!/bin/sh
# A nightly job for cron: run, add, check, publish. Its line in the crontab, where ensio is installed in ~/ensio:
#     0 2 * * * PATH=$HOME/ensio/bin:$PATH ENSIO_HISTORY=$HOME/runs.db /path/to/nightly.sh mpiexec -n 8 ./app
# Settings: ENSIO_HISTORY (the record), SITE (folder of a web server), and the command to run as arguments.
set -u
: "${ENSIO_HISTORY:?names the history}"
run=$(mktemp -d "${TMPDIR:-/tmp}/nightly.XXXXXX") || exit 2
trap 'rm -rf "$run"' EXIT
ensio run -o "$run/run" -- "$@" || exit 2
ensio history add "$run/run" --experiment "${EXPERIMENT:-nightly}" --label "node=$(hostname)" || exit 2
ensio history check --experiment "${EXPERIMENT:-nightly}" -o "${JUNIT:-$run/check.xml}"
verdict=$?
if [ -n "${SITE:-}" ]; then
    ensio history site "$SITE" || exit 2
fi
exit "$verdict"
