#!/usr/bin/env bash
# Takes all rights from a user that kgpu made: what kgpu gave, what was given to nobody but them, and in a namespace that kgpu made
# for them what they could give themselves by another name: bindings of its ServiceAccounts, and these. Values: user. Outputs,
# lines each: found (what led to rights; empty: there is no such user), namespaces (that were theirs), end (of their certificates),
# may (what they still may, asked of the API server: namespace, tab, rule), bindings (those that name them and others, as arguments
# of kubectl), accounts (ServiceAccounts with rights in a namespace that is not theirs alone), pods (in their namespaces).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

user=$(value user)
mine=kgpu.dev/user=$user,app.kubernetes.io/managed-by=kgpu
group=kgpu:users # of every user's certificate
tries=10         # rounds: the API server takes a moment to heed a binding that went, and so may a user who makes new ones

unreadable() { fail_transient API_UNREACHABLE 'the rights of the user cannot be read'; }

# A line for each subject of each binding: namespace, name in hexadecimal, kind, namespace and name of the subject, quoted: users
# choose such names, which may have any character.
# shellcheck disable=SC2016 # Go's template
subjects_template='{{range .items}}{{$of := .metadata}}{{range .subjects}}{{printf "%q\t%x\t%q\t%q\t%q\n" (or $of.namespace "") $of.name .kind (or .namespace "") .name}}{{end}}{{end}}'
end_template='{{range .items}}{{with .metadata.annotations}}{{with index . "kgpu.dev/certificate-end"}}{{.}}{{"\n"}}{{end}}{{end}}{{end}}'
names_template='{{range .items}}{{.metadata.name}}{{"\n"}}{{end}}'
spaces_template='{{range .items}}{{.metadata.namespace}}{{"\n"}}{{end}}'
pods_template='{{range .items}}{{if and (ne .status.phase "Succeeded") (ne .status.phase "Failed")}}{{.metadata.namespace}}/{{.metadata.name}}{{"\n"}}{{end}}{{end}}'

nothing=(--type=merge -p '{"subjects":null}')
declare -A spaces own kept accounts
found='' swept=''

# subjects_of KIND keeps the subjects of all bindings of a kind in a file of that name.
subjects_of() {
  local -a all=(--all-namespaces)
  if [[ $1 == clusterrolebindings ]]; then all=(); fi
  kube get "$1" "${all[@]}" -o go-template="$subjects_template" >"$KGPU_STEP/$1" || unreadable
}

look() {
  subjects_of rolebindings
  subjects_of clusterrolebindings
}

# find_spaces finds the namespaces in which the user has rights, and those of them that are theirs alone.
find_spaces() {
  local made others from name kind of whom space
  made=$(kube get rolebindings --all-namespaces -l "$mine" -o go-template="$spaces_template") || unreadable
  while read -r space; do [[ -z $space ]] || spaces[$space]=yes; done <<<"$made"
  while IFS=$'\t' read -r from name kind of whom; do
    if [[ $kind == '"User"' && $whom == "\"$user\"" ]]; then spaces[${from//\"/}]=yes; fi
  done <"$KGPU_STEP/rolebindings"
  made=$(kube get namespaces -l app.kubernetes.io/managed-by=kgpu -o go-template="$names_template") || unreadable
  others=$(kube get rolebindings --all-namespaces -l "kgpu.dev/user,kgpu.dev/user!=$user,app.kubernetes.io/managed-by=kgpu" -o go-template="$spaces_template") || unreadable
  for space in "${!spaces[@]}"; do
    if grep -qxF -- "$space" <<<"$made" && ! grep -qxF -- "$space" <<<"$others"; then own["\"$space\""]=yes; fi
  done
}

# disarm has what kgpu gave lead nobody to it, and go last: by it, a step that is begun again knows whose namespaces these are.
disarm() {
  local names space
  for space in "${!spaces[@]}"; do
    names=$(kube -n "$space" get rolebindings -l "$mine" -o name) || unreadable
    if [[ -n $names ]]; then
      found=yes
      kube -n "$space" patch rolebinding "${nothing[@]}" "kgpu-user-$user" >/dev/null || unreadable
    fi
  done
  names=$(kube get clusterrolebindings -l "$mine" -o name) || unreadable
  if [[ -n $names ]]; then
    found=yes
    kube patch clusterrolebinding "${nothing[@]}" "kgpu:nodes-view:$user" >/dev/null || unreadable
  fi
}

# theirs FROM KIND OF WHOM tells whether a subject of a binding in the namespace FROM is the user, or one as which they could act.
theirs() {
  case $2 in
    '"User"') [[ $4 == "\"$user\"" ]] ;;
    '"ServiceAccount"') [[ -n ${own[$3]-} ]] ;;
    '"Group"') [[ -n ${own[$1]-} && ($4 == '"system:'* || $4 == "\"$group\"") || $4 == '"system:serviceaccounts:'* && -n ${own["\"${4#'"system:serviceaccounts:'}"]-} ]] ;;
    *) false ;;
  esac
}

# decoded HEX prints a name.
decoded() { printf %b "${1//[0-9a-f][0-9a-f]/\\x&}"; }

# remove KIND NAMESPACE NAME deletes an object, and does not wait for its end: the user may have given it finalizers.
remove() {
  local -a now=(--wait=false)
  if kubernetes_before 11; then now=(); fi
  kube -n "$2" delete "$1" --ignore-not-found "${now[@]}" -- "$3" >/dev/null || unreadable
}

# drop KIND NAMESPACE NAME deletes a binding, and has it lead nobody anywhere first.
drop() {
  kube -n "$2" patch "$1" "${nothing[@]}" -- "$3" >/dev/null || unreadable
  remove "$1" "$2" "$3"
}

# sweep KIND deletes the bindings of a kind that are for the user only, or in their namespace, with the ServiceAccounts that have
# them, and keeps those that are for others, too.
sweep() {
  local from hex kind of whom at name
  local -A leads shared
  while IFS=$'\t' read -r from hex kind of whom; do
    at=$from$'\t'$hex
    if theirs "$from" "$kind" "$of" "$whom"; then
      leads[$at]=yes
      if [[ $kind == '"ServiceAccount"' && $whom != '"default"' ]]; then remove serviceaccount "${of//\"/}" "${whom//\"/}"; fi
    else
      shared[$at]=yes
      if [[ $kind == '"Group"' && $whom == "\"$group\"" ]]; then leads[$at]=yes; fi
      if [[ $kind == '"ServiceAccount"' && -n ${spaces[${of//\"/}]-} ]]; then accounts[${of//\"/}/${whom//\"/}]=yes; fi
    fi
  done <"$KGPU_STEP/$1"
  for at in "${!leads[@]}"; do
    IFS=$'\t' read -r from hex <<<"$at"
    found=yes
    # The dot keeps line ends at the end of a name.
    name=$(decoded "$hex" && echo .) from=${from//\"/}
    name=${name%.}
    if [[ -n ${own["\"$from\""]-} || -z ${shared[$at]-} ]]; then
      swept=yes
      drop "${1%s}" "$from" "$name"
    else
      kept["${from:+-n $from }${1%s} $(printf %q "$name")"]=yes
    fi
  done
}

# rules NAMESPACE USER GROUP prints what somebody may there whose certificate has this user and this group.
rules() {
  local what
  local -a as=(-n "$1" --as "$2" --as-group "$3" --as-group system:authenticated)
  if ! kubernetes_before 14; then
    kube auth can-i --list --no-headers "${as[@]}" 2>/dev/null | sed -E 's/ +/ /g; s/ $//' || unreadable
    return
  fi
  if kubernetes_before 8; then as=(-n "$1" --as "$2"); fi
  for what in 'get secrets' 'create pods' 'create rolebindings' 'list nodes'; do
    # shellcheck disable=SC2086 # two words
    if [[ $(kube auth can-i $what "${as[@]}" 2>/dev/null) == yes* ]]; then printf '%s\n' "$what"; fi
  done
}

# still_may keeps, in the file may, what the user may that not everybody may who has a certificate: in the namespaces that had to
# do with them, and, as default is one of them, in the cluster.
still_may() {
  local space
  rules kube-public kgpu:nobody system:authenticated >"$KGPU_STEP/everybody"
  : >"$KGPU_STEP/may"
  for space in default "${!spaces[@]}"; do
    rules "$space" "$user" "$group" >"$KGPU_STEP/rules"
    { grep -vxFf "$KGPU_STEP/everybody" "$KGPU_STEP/rules" || true; } | sed "s/^/$space\t/" >>"$KGPU_STEP/may"
  done
}

wait_api
look
find_spaces
disarm
for ((try = 1; ; try++)); do
  kept=() accounts=() swept=
  sweep rolebindings
  sweep clusterrolebindings
  still_may
  [[ (-n $swept || -s $KGPU_STEP/may && ${#kept[@]} -eq 0) && $try -lt $tries && $(seconds_left) -gt 0 ]] || break
  pause
  look
done

{ [[ -z $found ]] || echo yes; } | output found
for space in "${!spaces[@]}"; do printf '%s\n' "$space"; done | sort | output namespaces
for at in "${!kept[@]}"; do printf '%s\n' "$at"; done | sort | output bindings
for at in "${!accounts[@]}"; do printf '%s\n' "$at"; done | sort | output accounts
output may <"$KGPU_STEP/may"
{ kube get rolebindings --all-namespaces -l "$mine" -o go-template="$end_template" || unreadable; } | output end
for space in "${!own[@]}"; do kube -n "${space//\"/}" get pods -o go-template="$pods_template" || unreadable; done | output pods
for space in "${!spaces[@]}"; do kube -n "$space" delete rolebindings -l "$mine" >/dev/null || unreadable; done
# The last to go: a step that is begun again finds it, and knows that there was such a user.
kube delete clusterrolebindings -l "$mine" >/dev/null || unreadable
