#compdef kgpu
# zsh completion of kgpu: source <(kgpu completion zsh), or put it into a folder of $fpath as _kgpu.
_kgpu() {
  local line word what files
  local -a values
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      files=yes
      continue
    fi
    word=${line%%$'\t'*} what=
    if [[ $line == *$'\t'* ]]; then what=:${line#*$'\t'}; fi
    values+=("${word//:/\\:}$what")
  done < <("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)
  if [[ -n $files ]]; then _files; fi
  if (( $#values )); then _describe -t values kgpu values; fi
}
if [[ ${funcstack[1]-} == _kgpu ]]; then _kgpu "$@"; else compdef _kgpu kgpu; fi
