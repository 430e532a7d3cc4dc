# bash completion of kgpu: source <(kgpu completion bash), or put it into /etc/bash_completion.d.
_kgpu() {
  local line current=${COMP_WORDS[COMP_CWORD]} home=$HOME/
  local -a words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  COMPREPLY=()
  if [[ $current == '=' ]]; then current=; fi # --only=… is three words here
  words=("${words[@]/#\~\//$home}")
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <("${words[0]}" __complete "${words[@]:1}" "$current" 2>/dev/null)
}
complete -F _kgpu kgpu
