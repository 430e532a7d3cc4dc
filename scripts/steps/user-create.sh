#!/usr/bin/env bash
# Gives a user rights in a namespace, and has the cluster's authority sign the certificate that the user asks for. Values:
# user, namespace, role (a ClusterRole), namespaceObject (which is made where it is missing), manifest (the rights), request (a
# CertificateSigningRequest called kgpu-user-USER), limits (quotas for a namespace that kgpu made; may be missing), gpus (how many
# cards of each kind its pods may have at once; missing: as it is). Outputs: certificate (PEM), enforced (the Pod Security Standard of the
# namespace; empty: none).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

user=$(value user)
namespace=$(value namespace)
request=kgpu-user-$user

# make FILE creates an object.
make() {
  kube create -f "$1" >/dev/null 2>"$KGPU_STEP/errors" ||
    fail_transient USER_REFUSED "the API server refuses an object: $(<"$KGPU_STEP/errors")"
}

# drop_other_role deletes the user's rights where they are another role's: what a binding leads to cannot be changed.
drop_other_role() {
  local role
  role=$(kube -n "$namespace" get rolebinding "$request" --ignore-not-found -o go-template='{{.roleRef.name}}') ||
    fail_transient API_UNREACHABLE 'the rights of the user cannot be read'
  [[ -z $role || $role == "$(value role)" ]] || kube -n "$namespace" delete rolebinding "$request"
}

# limit_pods sets the quotas of the namespace. Where somebody else made it, what is at work in it may need a system's priority.
limit_pods() {
  local made
  made=$(kube get namespace "$namespace" -o go-template='{{with .metadata.labels}}{{with index . "app.kubernetes.io/managed-by"}}{{.}}{{end}}{{end}}') ||
    fail_transient API_UNREACHABLE 'the namespace cannot be read'
  if [[ $made == kgpu && -f $KGPU_STEP/values/limits ]]; then
    kube_apply "$KGPU_STEP/values/limits" >/dev/null 2>"$KGPU_STEP/errors" ||
      fail_transient USER_REFUSED "the API server refuses a quota: $(<"$KGPU_STEP/errors")"
  fi
  if [[ -f $KGPU_STEP/values/gpus ]]; then limit_cards; fi
}

# shellcheck disable=SC2016 # Go's template
resources_template='{{range .items}}{{range $name, $number := .status.allocatable}}{{$name}}{{"\n"}}{{end}}{{end}}'

# limit_cards sets how many cards, or instances of cards, the pods may have at once, of each kind that nodes offer.
limit_cards() {
  local offered there name hard=
  offered=$(kube get nodes -o go-template="$resources_template") || fail_transient API_UNREACHABLE 'the nodes cannot be read'
  while read -r name; do
    if [[ $name =~ ^nvidia\.com/[A-Za-z0-9._-]+$ ]]; then hard+=",\"requests.$name\":$(value gpus)"; fi
  done < <(printf 'nvidia.com/gpu\n%s\n' "$offered" | sort -u)
  there=$(kube -n "$namespace" get resourcequota kgpu-gpus --ignore-not-found -o name) || fail_transient API_UNREACHABLE 'the quotas cannot be read'
  if [[ -z $there ]]; then
    kube -n "$namespace" create quota kgpu-gpus --hard=requests.nvidia.com/gpu="$(value gpus)" >/dev/null 2>"$KGPU_STEP/errors" ||
      fail_transient USER_REFUSED "the API server refuses the quota of cards: $(<"$KGPU_STEP/errors")"
  fi
  kube -n "$namespace" patch resourcequota kgpu-gpus --type=merge -p "{\"spec\":{\"hard\":{${hard#,}}}}" >/dev/null 2>"$KGPU_STEP/errors" ||
    fail_transient USER_REFUSED "the API server refuses the quota of cards: $(<"$KGPU_STEP/errors")"
}

# forget_request deletes the request: what came of it is handed over.
forget_request() {
  kube delete certificatesigningrequest "$request" --ignore-not-found >/dev/null 2>&1 || true
}

request_template='{{range .status.conditions}}{{if or (eq .type "Denied") (eq .type "Failed")}}no {{.type}}: {{.reason}} {{.message}}{{end}}{{end}}{{with .status.certificate}}yes {{.}}{{end}}'

# wait_for_it prints the certificate, in base64.
wait_for_it() {
  local answer
  while :; do
    answer=$(kube get certificatesigningrequest "$request" -o go-template="$request_template" 2>/dev/null) || answer=
    case $answer in
      'yes '*)
        printf '%s\n' "${answer#yes }"
        return
        ;;
      'no '*) fail USER_REFUSED "the certificate is refused: ${answer#no }" ;;
    esac
    [[ $(seconds_left) -gt 0 ]] || fail USER_REFUSED 'nobody signs the certificate: is kube-controller-manager at work?'
    pause
  done
}

wait_api
there=$(kube get namespace "$namespace" --ignore-not-found -o name) || fail_transient API_UNREACHABLE 'the namespace cannot be read'
[[ -n $there ]] || make "$KGPU_STEP/values/namespaceObject"
limit_pods
drop_other_role
kube_apply "$KGPU_STEP/values/manifest" >/dev/null 2>"$KGPU_STEP/errors" ||
  fail_transient USER_REFUSED "the API server refuses the rights of the user: $(<"$KGPU_STEP/errors")"
forget_request
make "$KGPU_STEP/values/request"
kube certificate approve "$request" >/dev/null 2>"$KGPU_STEP/errors" ||
  fail_transient USER_REFUSED "the certificate is not approved: $(<"$KGPU_STEP/errors")"
signed=$(wait_for_it)
base64 -d <<<"$signed" >"$KGPU_STEP/certificate"
forget_request
# Not every host has openssl; the end is told in the list of users only.
if end=$(openssl x509 -noout -enddate -in "$KGPU_STEP/certificate" 2>/dev/null); then
  kube -n "$namespace" annotate --overwrite rolebinding "$request" "kgpu.dev/certificate-end=${end#notAfter=}" >/dev/null
fi
output certificate <"$KGPU_STEP/certificate"
kube get namespace "$namespace" -o go-template='{{with .metadata.labels}}{{with index . "pod-security.kubernetes.io/enforce"}}{{.}}{{end}}{{end}}' >"$KGPU_STEP/enforced" ||
  fail_transient API_UNREACHABLE 'the namespace cannot be read'
output enforced <"$KGPU_STEP/enforced"
