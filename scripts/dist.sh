#!/usr/bin/env bash
# dist.sh VERSION CYCLONEDX: a release in dist/, for `make dist`: static programs, what each is made of, and SHA256SUMS. CYCLONEDX
# is the tool that reads a program's list of modules, as `go run` takes it. What was made is checked at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1 cyclonedx=$2
out=$PWD/dist

compile() { # FOLDER OS ARCHITECTURE FILE: of the source in a folder
  local flags="-s -w -X main.version=$version"
  (cd "$1" && CGO_ENABLED=0 GOOS=$2 GOARCH=$3 go build -trimpath -buildvcs=false -ldflags "$flags" -o "$4" .)
}

rm -rf "$out"
mkdir "$out"
for os in linux darwin; do
  for arch in amd64 arm64; do
    program=$out/kgpu-$version-$os-$arch
    compile . "$os" "$arch" "$program"
    # Without a number and a time of its own it is the same for the same program.
    go run "$cyclonedx" bin -json -noserial -version "$version" -output "$program.cdx.json" "$program"
    sed -i.time -E '/^ *"timestamp": /d' "$program.cdx.json"
    rm "$program.cdx.json.time"
  done
done
(cd "$out" && sha256sum -- kgpu-* >SHA256SUMS)

echo "==> checking"
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
for program in "$out"/kgpu-*64; do
  modules=$(go version -m "$program")
  grep -q 'CGO_ENABLED=0' <<<"$modules" || { echo "$program is not static" >&2; exit 1; }
  while read -r _ module number _; do
    grep -qF "pkg:golang/$module@$number" "$program.cdx.json" || { echo "$program.cdx.json lacks $module $number" >&2; exit 1; }
  done < <(grep -P '^\tdep\t' <<<"$modules")
done
host=kgpu-$version-$(go env GOHOSTOS)-$(go env GOHOSTARCH)
[[ $("$out/$host" --version) == *"$version"* ]] || { echo "$host does not say its version, $version" >&2; exit 1; }
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
mkdir "$again/source"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$again/source"
compile "$again/source" "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" "$again/kgpu"
cmp "$again/kgpu" "$out/$host"
ls -l "$out"
