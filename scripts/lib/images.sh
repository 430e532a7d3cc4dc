# shellcheck shell=bash
# Images that do not come: what container runtimes, kubeadm and kubelets say about it, and what that means.

# Where a runtime does not sync images: the boot in which some began to come, and those that were there before, a line each. After a
# power cut, those that came since count as pulled, and their files may be empty.
unsettled_images=/var/lib/kgpu/unsettled-images

# images_torn tells whether the host went down while images came.
images_torn() {
  of_former_boot "$unsettled_images"
}

# images_begin CRI_SOCKET notes, as durably, that images are about to come, and has those come again that a power cut may have torn. The
# end of a step takes the note away. Nothing of a cluster runs here: a container would keep what was unpacked.
images_begin() {
  local new=$KGPU_STEP/images
  if images_torn; then images_drop "$1"; fi
  if [[ -s $unsettled_images || ($1 == *containerd.sock && ! -x $(command -v ctr)) ]] || images_synced "$1"; then return; fi
  cp /proc/sys/kernel/random/boot_id "$new"
  runtime_images "$1" >>"$new" || fail STEP_FAILED "$images_untold"
  mv "$new" "$unsettled_images"
  sync -d "$unsettled_images" "${unsettled_images%/*}"
}

# images_drop CRI_SOCKET removes the images that came since the note was begun.
images_drop() {
  local now
  local -a came remove=(ctr -n k8s.io images rm --sync)
  now=$(runtime_images "$1") || fail STEP_FAILED "$images_untold"
  mapfile -t came < <(grep -vxFf <(tail -n +2 "$unsettled_images") <<<"$now" | grep .)
  if [[ ${#came[@]} -gt 0 ]]; then
    echo "the host went down before ${#came[@]} images were on the disk: pulling them again"
    [[ $1 == *containerd.sock ]] || remove=(docker image rm -f)
    timeout 120 "${remove[@]}" "${came[@]}" >/dev/null || fail STEP_FAILED "images that a power cut may have torn stay: ${came[*]}"
  fi
  rm -f "$unsettled_images"
}

# runtime_images CRI_SOCKET prints the images that a runtime has, a line each.
images_untold='the container runtime does not list its images'
runtime_images() {
  if [[ $1 == *containerd.sock ]]; then kubelet_images; else timeout 60 docker image ls -q --no-trunc | sort -u; fi
}

# image_reason WORDS prints the reason that is in the words of a container runtime; fails when they have none.
image_reason() {
  local words=${1,,}
  local lookup='lookup [^ ]+.*(i/o timeout|connection refused|no such host|server misbehaving)'
  local busy='toomanyrequests|[] :](429|50[0-4])( [a-z]|$)|status( code)?:? (429|50[0-4])'
  local refused='[] :](401|403|404) [a-z]|: not found|manifest unknown|name unknown|repository does not exist|access denied|access to the resource is denied|unauthorized'
  local other='unexpected (commit )?digest|failed size validation|failed (layer|manifest|filesystem layer) verification|verification failed for digest|digest (mismatch|did not match)'
  local lost='connection (refused|reset)|i/o timeout|tls handshake|no route to host|network is unreachable|unexpected eof|to discard to offset|deadline exceeded|x509:|client.timeout|short read'
  if [[ $words =~ $disk_words ]]; then
    echo HOST_DISK_FULL
  elif [[ $words =~ $other ]]; then
    echo IMAGE_MISMATCH
  elif [[ $words =~ $lookup || $words == *'no such host'* || $words == *'name resolution'* ]]; then
    echo NET_NAME_UNRESOLVED
  elif [[ $words =~ $busy ]]; then
    echo REGISTRY_BUSY
  elif [[ $words =~ $refused ]]; then
    echo IMAGE_UNAVAILABLE
  elif [[ $words =~ $lost ]]; then
    echo REGISTRY_UNREACHABLE
  else
    return 1
  fi
}

# image_words WORDS prints the words without what each program wraps around those of the next, and with the image's name.
image_words() {
  local text name
  text=$(sed -E 's/.*rpc error: code = [A-Za-z]+ desc = //; s/^.*failed to pull and unpack image/failed to pull image/
    s/(failed to prepare extraction snapshot) "[^"]*"/\1/; s#//[^/@ ]*@#//#g' <<<"$1" | cut -c 1-500)
  name=$(grep -m 1 -oiE 'pull image "?[^" ]+' <<<"$1" | head -n 1) || name=
  name=${name##*[ \"]}
  name=${name%:}
  if [[ $text != *"$name"* ]]; then text="$name: $text"; fi
  printf '%s\n' "$text"
}

# pull_failed WORDS ends the step after a pull that failed with these words.
pull_failed() {
  local reason
  reason=$(image_reason "$1") || reason=STEP_FAILED
  case $reason in
    HOST_DISK_FULL | IMAGE_MISMATCH | IMAGE_UNAVAILABLE) fail "$reason" "$(image_words "$1")" ;;
    *) fail_transient "$reason" "$(image_words "$1")" ;;
  esac
}

# missing_reason WORDS prints the reason why a pod's image does not come, when it is the proof's or the notebook's.
missing_reason() {
  if [[ $(image_reason "$1") == HOST_DISK_FULL ]]; then echo HOST_DISK_FULL; else echo SMOKE_IMAGE; fi
}

# A line for each container that waits: namespace and name of its pod, node, why, and the words, quoted.
# shellcheck disable=SC2016 # Go's template
waiting_template='{{range .items}}{{$pod := printf "%s %s %s" .metadata.namespace .metadata.name .spec.nodeName}}
{{- range .status.initContainerStatuses}}{{with .state.waiting}}{{$pod}} {{.reason}} {{printf "%q" (or .message "")}}
{{end}}{{end}}{{range .status.containerStatuses}}{{with .state.waiting}}{{$pod}} {{.reason}} {{printf "%q" (or .message "")}}
{{end}}{{end}}{{end}}'

# pull_hindrance ARG... looks at the pods that the arguments of kubectl choose, and prints what keeps an image from one of
# them: a reason, and node and words, separated by a tab. It prints nothing when nothing does.
pull_hindrance() {
  local space name node why words reason
  while read -r space name node why words; do
    [[ -n $why ]] || continue
    words=$(unquoted "$words")
    # Older kubelets say "Back-off" and no more, and the image of the pod itself is in events only.
    if ! image_missing "$why" || ! image_reason "$words" >/dev/null; then
      words=$(kube -n "$space" get events --field-selector "involvedObject.name=$name,type=Warning" --sort-by=.lastTimestamp \
        -o go-template="$events_template" 2>/dev/null | grep -i 'pull' | grep -v 'Error: ' | tail -n 1) || continue
      words=$(unquoted "${words#Warning }")
    fi
    reason=$(image_reason "$words") || continue
    printf '%s\tnode %s: %s\n' "$reason" "$node" "$(image_words "$words")"
    return
  done < <(kube get pods "$@" --field-selector=status.phase=Pending -o go-template="$waiting_template" 2>/dev/null)
}

# note_pulls WORDS ARG... keeps what pull_hindrance says in $pulls, while the words of the pods that ARG chooses say that an
# image does not come. It asks again when they change.
pulls='' pulls_asked=''
note_pulls() {
  if ! image_missing "$1"; then
    pulls=
  elif [[ -z $pulls || $1 != "$pulls_asked" ]]; then
    pulls=$(pull_hindrance "${@:2}")
  fi
  pulls_asked=$1
}

# pull_words HINDRANCE prints what pull_hindrance said, the reason first: of a long line, a narrow terminal shows the begin.
pull_words() {
  printf 'its image (%s): %s' "${1%%$'\t'*}" "${1#*$'\t'}"
}

# watch_pulls ARG... is called in every round, of a second, of a loop that waits for the pods that ARG chooses. $pull is what
# pull_hindrance says. The kubelet tries again by itself, with pauses that grow; what it meets again and again and no time
# heals ends the step.
pull='' pull_rounds=0 pull_hopeless=0
watch_pulls() {
  pull_rounds=$((pull_rounds + 1))
  [[ $((pull_rounds % 5)) -eq 1 ]] || return 0
  pull=$(pull_hindrance "$@")
  case ${pull%%$'\t'*} in
    HOST_DISK_FULL | IMAGE_MISMATCH | IMAGE_UNAVAILABLE) pull_hopeless=$((pull_hopeless + 1)) ;;
    *) pull_hopeless=0 ;;
  esac
  if [[ $pull_hopeless -gt 8 ]]; then
    [[ $pull == *$'\t'"node ${HOSTNAME,,}: "* ]] || of_other_hosts
    fail "${pull%%$'\t'*}" "${pull#*$'\t'}"
  fi
}

# pull_text prints what $pull adds to what is waited for.
pull_text() {
  if [[ -n $pull ]]; then printf '; %s' "${pull#*$'\t'}"; fi
}
