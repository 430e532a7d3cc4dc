# shellcheck shell=bash
# Holds the cluster for one run of kgpu. It is read by `bash -s DIRECTORY SECONDS`, run by root on the control plane; what
# follows it on standard input is the run's ID, who runs it, the command, a word and a number, a line each, and then a line
# every now and then. It prints `held NUMBER` when it has the cluster, and `beat LINE` for each line that it hears then. It ends
# when it hears `over`, or when its input ends or nothing came for so many seconds: then it leaves who had the cluster. When
# another run has the cluster it prints `busy` and what is known of that run, and ends at once. The word is
#   first   the run has not had the cluster yet
#   again   it had, and lost it with the connection. Where another run had it since, this prints `changed` and ends
#   reset   as again, of a run that makes this host forget everything, that it had the cluster too
# The number that it is told is the highest of a lock that the run knows of. The one that it prints is the lock's own, for which see
# start.sh.
set -euo pipefail
umask 077

base=$1
silence=$2
dir=$base/operator

# came_from prints the address that the connection comes from. sudo hides it from its command, but not from its own process.
came_from() {
    local pid=$$ parent word key value
    while ((pid > 1)); do
        while IFS= read -r -d '' word; do
            if [[ $word == SSH_CONNECTION=* ]]; then
                word=${word#*=}
                echo "${word%% *}"
                return
            fi
        done 2>/dev/null <"/proc/$pid/environ" || :
        parent=0
        while read -r key value _; do
            [[ $key != PPid: ]] || parent=$value
        done 2>/dev/null <"/proc/$pid/status" || :
        pid=$parent
    done
}

# take RUN takes the lock. Those who only look at it have it for a moment; the connection that this run had before, and
# lost, has it until its silence was long enough. A holder takes the file along: then there is another one, or none.
take() {
    local try
    for ((try = 0; try < 100; try++)); do
        if ! mkdir -p "$dir" || ! { exec 9>>"$dir/lock"; }; then
            continue
        fi
        if ! flock --wait 1 9; then
            grep --quiet --line-regexp --fixed-strings "run=$1" "$dir/holder" 2>/dev/null || return 1
        elif [[ /proc/self/fd/9 -ef $dir/lock ]]; then
            return 0
        fi
    done
    exit 1
}

# untouched HOW RUN: whether nobody else has had the cluster since this run had it.
untouched() {
    [[ $1 == first ]] || grep --quiet --line-regexp --fixed-strings "run=$2" "$dir/holder" 2>/dev/null ||
        [[ $1 == reset && ! -e $base/run ]]
}

# leave takes along what a reset left of the directory around it, too. The lock goes last: who comes then finds all gone.
# Who had the cluster stays known of a run that did not say that it is over, and may come again. The number stays where kgpu
# keeps anything else.
# shellcheck disable=SC2317 # the trap calls it
leave() {
    local others
    rm -f "$dir"/*.tmp
    if [[ $line == over ]]; then
        rm -f "$dir/holder"
        others=$(find "$base" -mindepth 1 -maxdepth 1 ! -name operator ! -name fence -print -quit)
        [[ -n $others ]] || rm -f "$base/fence"
    fi
    rm -f "$dir/lock"
    rmdir "$dir" "$base" 2>/dev/null || :
}

# forget_outputs takes the outputs of steps out of the events of batches that ended: they may be secrets, and the run that
# wanted them has heard them. All other bytes stay where they are, for those who still read. The age of the folders, by which
# old batches are removed, stays.
forget_outputs() {
    local batch kept
    for batch in "$base"/run/*; do
        if [[ -e $batch/result ]] && grep -q $'^O\t' "$batch/events"; then
            kept=$(awk -F '\t' -v OFS='\t' '$1 == "O" { gsub(/./, "-", $4) } { print }' "$batch/events")
            printf '%s\n' "$kept" 1<>"$batch/events"
        fi
    done
}

# save FILE: stdin becomes FILE, complete and on the disk or not at all.
save() {
    local new=$dir/${1##*/}.tmp
    cat >"$new"
    sync -d "$new"
    mv "$new" "$1"
    sync -d "${1%/*}"
}

# give_number HOW KNOWN makes `mine` the lock's number: greater than that of any other, as far as this host and the run know. Where
# neither knows one, as after a reset, the seconds of the clock are the start, so that runs from before it come later only where
# the clock was set back. A lock that is taken again keeps its number: nobody else had the cluster since.
give_number() {
    mine=0
    [[ ! -s $base/fence ]] || mine=$(<"$base/fence")
    ((mine > 0)) || [[ $1 != first ]] || printf -v mine '%(%s)T' -1
    ((mine >= $2)) || mine=$2
    [[ $1 != first ]] || mine=$((mine + 1))
    echo "$mine" | save "$base/fence"
}

hold() {
    local run who command how known mine since
    IFS= read -r run
    IFS= read -r who
    IFS= read -r command
    IFS= read -r how
    IFS= read -r known
    if ! take "$run"; then
        echo busy
        cat "$dir/holder" 2>/dev/null || :
        printf 'now=%(%s)T\n' -1
        exit 0
    fi
    line=over
    trap leave EXIT
    if ! untouched "$how" "$run"; then
        echo changed
        exit 0
    fi
    line=
    printf -v since '%(%s)T' -1
    printf '%s\n' "who=$who" "from=$(came_from)" "since=$since" "command=$command" "run=$run" | save "$dir/holder"
    give_number "$how" "$known"
    echo "held $mine"
    while IFS= read -r -t "$silence" line && [[ $line != over ]]; do echo "beat $line"; done
    if [[ $line == over ]]; then forget_outputs; fi
}

hold; exit # on one line: bash has read no further, and what follows is not for bash
