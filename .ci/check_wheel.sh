#!/usr/bin/env bash
# check_wheel.sh SDIST WHEEL: whether both are complete, and the wheel small. A folder or file kind that the
# packaging has forgotten is not seen by tests which run in the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
sdist=$1 wheel=$2
limit=$((5 * 1024 * 1024))

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# files FOLDER...: what a checkout has there, without what builds and runs leave behind
files() {
    find "$@" -type f ! -path '*/__pycache__/*' ! -path '*/.*_cache/*' ! -name '*.pyc' ! -name '*.so' ! -name '*.png' | LC_ALL=C sort
}

# complain WHAT: stops if $scratch/missing lists files
complain() {
    if [ -s "$scratch/missing" ]; then
        echo "$1:" >&2
        cat "$scratch/missing" >&2
        exit 1
    fi
}

tar -tzf "$sdist" | sed 's|^[^/]*/||' | LC_ALL=C sort > "$scratch/sdist"
files .ci .github benchmarks cgrad docs examples src tests > "$scratch/tree"
LC_ALL=C comm -23 "$scratch/tree" "$scratch/sdist" > "$scratch/missing"
complain "not in $(basename "$sdist"); see MANIFEST.in"

"${PYTHON:-python3}" -m zipfile -l "$wheel" | awk '{print $1}' | LC_ALL=C sort > "$scratch/wheel"
files cgrad > "$scratch/tree"
LC_ALL=C comm -23 "$scratch/tree" "$scratch/wheel" > "$scratch/missing"
complain "not in $(basename "$wheel"); see [tool.setuptools] in pyproject.toml"

grep -E '^(src|tests|examples|benchmarks|docs)/|\.(pyx|c|h)$' "$scratch/wheel" > "$scratch/missing" || true
complain "not wanted in $(basename "$wheel")"

for piece in src/*.pyx; do
    name=$(basename "$piece" .pyx)
    grep -qE "^cgrad/_$name\.[^/]*(so|pyd)$" "$scratch/wheel" || echo "cgrad/_$name"
done > "$scratch/missing"
complain "extensions missing in $(basename "$wheel")"

size=$(wc -c < "$wheel")
if [ "$size" -gt "$limit" ]; then
    echo "$(basename "$wheel") has $size bytes; at most $limit are allowed" >&2
    exit 1
fi
echo "$(basename "$sdist"): complete; $(basename "$wheel"): complete, $((size / 1024)) KiB"
