# shellcheck shell=bash
# What apt says about a download that it refuses, or that does not come.

# A file that is not what the signed lists say.
apt_other_words='Hash Sum mismatch|File has unexpected size'

# Lists that are not what was signed: gpgv's and sqv's words.
apt_signature_words='BADSIG|[Bb]ad signature|has been manipulated|Clearsigned file isn.t valid'

apt_name_words="Could not resolve '?[^ ']+|Temporary failure resolving '[^']+'"

# apt_download_failed WHAT ends the step if a download is why apt failed, and tells what was expected and what came.
apt_download_failed() {
  local line
  if line=$(apt_says "$apt_other_words"); then fail REPO_CONTENT_MISMATCH "$1: $(apt_mismatch "$line")"; fi
  if line=$(apt_says "$apt_signature_words"); then
    # apt would begin with it the next time, and refuse it again.
    rm -f /var/lib/apt/lists/partial/*Release*
    fail REPO_CONTENT_MISMATCH "$1: what came is not what was signed: $line"
  fi
  if line=$(grep -m 1 -oE "$apt_name_words" "$apt_log"); then fail_transient NET_NAME_UNRESOLVED "$1: $line"; fi
  if line=$(apt_says '^(E:|W:)? .*  40[137] '); then fail REPO_UNREACHABLE "$1: $line"; fi
}

# apt_mismatch LINE prints apt's line with both checksums, where apt has told them.
apt_mismatch() {
  awk -v line="$1" '
    /^E: .*(Hash Sum mismatch|File has unexpected size)/ && !told { line = $0; told = 1 }
    /Hashes of expected file:/ { side = "expected" }
    /Hashes of received file:/ { side = "received" }
    /- SHA256:/ && side && !(side in sum) { sum[side] = $0; sub(/.*SHA256:/, "", sum[side]) }
    END {
      sub(/^E: +/, "", line); sub(/^ +/, "", line)
      printf "%s", line
      if ("received" in sum) printf "; it has sha256 %s", sum["received"]
      if ("expected" in sum) printf "%s expected %s", ("received" in sum) ? "," : "; sha256", sum["expected"]
    }' "$apt_log"
}
