#!/usr/bin/env bash
# Brings the control plane of this host to another version of Kubernetes. Its kubelet stays as it is. Values: version, how (apply:
# it is the first that comes there; node: another has), criSocket, gates (of all kubelets, that the version needs, a line each: Name=false),
# flags (of kubeadm, one a line).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

version=$(wanted_version)
how=$(value how)
mapfile -t flags < <(value_lines flags)
mapfile -t gates < <(value_lines gates)

# with_gates prints the kubelets' configuration, standard input, with these gates where it says nothing of them.
with_gates() {
  local text gate wanting=
  text=$(cat)
  for gate in "${gates[@]}"; do
    grep -qE "^  ${gate%%=*}:" <<<"$text" || wanting+="  ${gate%%=*}: ${gate#*=}"$'\n'
  done
  awk -v wanting="$wanting" '
    { print }
    /^featureGates:/ { printf "%s", wanting; done = 1 }
    END { if (!done && wanting != "") printf "featureGates:\n%s", wanting }' <<<"$text"
}

# set_gates has kubeadm give all kubelets these gates: it takes their configuration from the cluster.
set_gates() {
  local new=$KGPU_STEP/kubelet
  [[ ${#gates[@]} -gt 0 ]] || return 0
  kube -n kube-system get configmap kubelet-config -o go-template='{{.data.kubelet}}' >"$new.old" ||
    fail_transient API_UNREACHABLE 'the API server does not tell the configuration of kubelets'
  with_gates <"$new.old" >"$new"
  if cmp -s "$new" "$new.old"; then return; fi
  kube -n kube-system create configmap kubelet-config --from-file=kubelet="$new" --dry-run=client -o yaml >"$new.yaml"
  kube apply --server-side --force-conflicts --field-manager kgpu -f "$new.yaml" ||
    fail_transient API_UNREACHABLE 'the API server does not take the configuration of kubelets'
}

wait_api
set_gates
upgrade_begins plane
give_virtual_ip_away
case $how in
  apply) kubeadm_upgrade apply "v$version" -y "${flags[@]}" ;;
  node) kubeadm_upgrade node "${flags[@]}" ;;
  *) fail STEP_FAILED "there is no way '$how' to upgrade" ;;
esac
wait_local_api
upgrade_ended
