# fish completion of kgpu: kgpu completion fish > ~/.config/fish/completions/kgpu.fish
function __kgpu_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l kgpu $words[1]
    set -e words[1]
    for line in ($kgpu __complete $words "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$current"
        else
            printf '%s\n' "$line"
        end
    end
end
complete -c kgpu -f -a '(__kgpu_complete)'
