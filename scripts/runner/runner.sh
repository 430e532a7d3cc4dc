#!/bin/bash
# Runs the steps of the batch it lies in, in order, and tells in `events` what happens, one line each, tab separated:
#   B step epoch-ms · L step text · W step what-for · ! step warning · O step name base64 · D step exit ms reason detail · E exit
# It is started as a unit of its own, so that it goes on when the connection that started it is lost.
set -euo pipefail
umask 077

dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
base=${dir%/run/*}
batch=${dir##*/}
scratch=$base-tmp
keep_batches=5
kill_after=5 # seconds between TERM and KILL when a step's time is up

# tell WORD...: adds an event. Where there is no room for it, the reserve gives some, and what got there of the line ends.
tell() {
    local IFS=$'\t'
    if ! printf '%s\n' "$*" >>"$dir/events"; then
        rm -f "$dir/reserve"
        printf '\n%s\n' "$*" >>"$dir/events"
    fi
}

# make_reserve: keeps room to say how it ends, for the case that the steps fill the disk. No zeros, which some file systems
# would not write. A disk that is full from the start is no reason to stop: the steps may be the ones that make room.
make_reserve() {
    head --bytes=256K /dev/urandom >"$dir/reserve" || rm -f "$dir/reserve"
} 2>/dev/null

# The clock may be set while a step runs, so durations come from the uptime.
uptime_ms() {
    local up
    read -r up _ </proc/uptime
    echo $((10#${up/./} * 10))
}

one_line() { tr '\t\n\r' '   ' | sed 's/ *$//'; }

# save FILE: stdin becomes FILE, complete and on the disk or not at all. Without -d, the sync of Ubuntu 25.10 and later (uutils)
# writes every file system of the host, and says nothing of errors.
save() {
    cat >"$1.tmp"
    sync -d "$1.tmp"
    mv "$1.tmp" "$1"
    sync -d "$(dirname "$1")"
}

# log_lines STEP: makes events of a step's output, of each line when it ends. Of a progress bar the last state stays; lines
# end at 4 KiB, and what is beyond 16 KiB is not kept. In perl, which is on every host, as dpkg needs it: cut of Ubuntu 25.10
# and later (uutils) keeps back what it writes, whatever stdbuf says, and the whole of a line that does not end.
# shellcheck disable=SC2016 # perl expands
log_lines() {
    LC_ALL=C exec perl -e '
        $| = 1;
        my ($step, $line) = ($ARGV[0], "");
        sub event {
            $line =~ tr/\0//d;
            my $text = (split /\r/, $line)[-1] // "";
            $line = "";
            $text =~ s/^(.{4096}).+/$1 [cut]/;
            return $text =~ s/^([W!])\t// ? "$1\t$step\t$text\n" : "L\t$step\t$text\n";
        }
        while (sysread STDIN, my $read, 65536) {
            my $events = "";
            for (split /^/, $read) {
                my $ends = chomp;
                $line .= substr $_, 0, 16384 - length $line;
                $events .= event if $ends;
            }
            print $events or die "events: $!\n";
        }
        print event if length $line;' "$1"
}

end_line() {
    if [[ -n $(tail --bytes=1 "$dir/events") ]]; then
        echo >>"$dir/events"
    fi
}

# wait_for_log PID: until the log is complete; not for ever, because a process that left the step's group may keep the pipe open.
wait_for_log() {
    local log=$1 guard
    sleep 5 8>&- 9>&- &
    guard=$!
    while kill -0 "$log" 2>/dev/null && kill -0 "$guard" 2>/dev/null; do
        wait -n || :
    done
    kill "$log" "$guard" 2>/dev/null || :
    wait "$log" "$guard" 2>/dev/null || :
}

# watch STEP-DIR GROUP: ends the step's processes when its time is up. What it waits for others to let go of a lock is no
# time of its own; the library keeps the account of that, in seconds. Nobody writes to the pipe: reading from it is a
# sleep that leaves no process behind.
watch() {
    local step=$1 group=$2 began clock waited left
    began=$(uptime_ms)
    exec {clock}<> <(:)
    while
        waited=0
        if [[ -e $step/waited ]]; then waited=$(<"$step/waited"); fi
        left=$((($(<"$step/timeout") + waited) * 1000 - $(uptime_ms) + began))
        ((left > 0))
    do
        read -r -t "$((left / 1000)).$(printf %03d $((left % 1000)))" <&"$clock" || :
    done
    : >"$step/expired"
    kill -TERM -- "-$group" || :
    kill -CONT -- "-$group" || :
    read -r -t "$kill_after" <&"$clock" || :
    kill -KILL -- "-$group" || :
}

# script_under_timeout STEP-DIR: the step's exit status; its whole process group is gone afterwards. What a step did is on the
# disk before it counts as done: programs of packages sync nothing, and a later run sees that the package is there.
# shellcheck disable=SC2016 # the inner shell expands
script_under_timeout() {
    local step=$1 group status=0 log watch
    mkfifo "$step/output"
    log_lines "$(<"$step/id")" <"$step/output" >>"$dir/events" 8>&- 9>&- &
    log=$!
    set -m # a process group of its own
    (
        umask 022
        cd /
        if [[ -d $scratch ]]; then export TMPDIR=$scratch; fi
        export KGPU_STEP=$step
        bash "$step/script.sh" && exec bash -c '. "$KGPU_STEP/../../lib.sh"; settle_step'
    ) >"$step/output" 2>&1 </dev/null 8>&- 9>&- &
    group=$!
    set +m
    watch "$step" "$group" >/dev/null 2>&1 </dev/null 8>&- 9>&- &
    watch=$!
    wait "$group" || status=$?
    kill "$watch" 2>/dev/null || :
    wait "$watch" 2>/dev/null || :
    kill -KILL -- "-$group" 2>/dev/null || :
    wait_for_log "$log"
    end_line
    rm -f "$step/output"
    return "$status"
}

# no_room STEP FROM REASON DETAIL: prints a better reason and detail, separated by a tab, for a step that failed
# because a file system is full; its output begins after byte FROM of the events.
# shellcheck disable=SC2016 # the inner shell expands
no_room() {
    tail --bytes="+$(($2 + 1))" "$dir/events" | KGPU_STEP=$1 timeout --kill-after=5 60 \
        bash -c '. "$KGPU_STEP/../../lib.sh"; disk_verdict "$@"' kgpu "${@:3}" 8>&- 9>&-
} 2>/dev/null

tell_outputs() {
    local step=$1 file
    for file in "$step"/out/*; do
        if [[ -f $file ]]; then
            tell O "$(<"$step/id")" "${file##*/}" "$(base64 --wrap=0 "$file")"
        fi
    done
}

run_step() {
    local step=$1 id began took from status=0 reason='' detail='' full
    id=$(<"$step/id")
    printf '%s\t%s\t%s\t%s\n' "$(<by)" "$batch" "$id" "$(date --utc +%FT%TZ)" >"$base/lock" || :
    from=$(stat --format=%s "$dir/events")
    began=$(uptime_ms)
    tell B "$id" "$((${EPOCHREALTIME/./} / 1000))"
    script_under_timeout "$step" || status=$?
    took=$(($(uptime_ms) - began))

    if ((status == 0)); then
        tell_outputs "$step"
    elif [[ -e $dir/stop ]]; then
        status=1
        reason=CANCELLED
        detail="another run asked this one to stop; $([[ ! -s $step/failure ]] || cut --fields=2- "$step/failure" | one_line)"
    elif [[ -s $step/failure ]]; then
        reason=$(head --lines=1 "$step/failure" | cut --fields=1 | one_line)
        detail=$(cut --fields=2- "$step/failure" | one_line)
    elif [[ -e $step/expired ]]; then
        status=124
        reason=STEP_TIMEOUT
        detail="not done after $(<"$step/timeout") s"
    else
        reason=STEP_FAILED
    fi
    if ((status != 0)) && [[ $reason != CANCELLED ]] && full=$(no_room "$step" "$from" "$reason" "$detail"); then
        status=1 # nobody tries again what needs a person to make room
        reason=${full%%$'\t'*}
        detail=$(one_line <<<"${full#*$'\t'}")
    fi
    if ((status != 0)); then
        rm -f "$dir/reserve"
    fi
    rm -rf "$step/values" "$step/files" "$step/out"
    printf '%s\t%s\t%s\n' "$status" "$reason" "$detail" | save "$step/result"
    tell D "$id" "$status" "$took" "$reason" "$detail"
    return "$status"
}

# make_scratch makes the folder for temporary files of the programs that the steps run, which some of them do as another user: in
# /tmp, those of a program that is killed would stay for good. Where there is no room for it, they find another one.
make_scratch() {
    drop_scratch
    mkdir --mode=1777 "$scratch" || :
}

# drop_scratch: a process that left its step's group may write there still, which is no reason to end without a result.
drop_scratch() { rm -rf "$scratch" || :; }

# run_steps runs them until one fails or somebody leaves a file `stop`.
run_steps() {
    local step status
    for step in "$dir"/steps/*/; do
        if [[ -e $dir/stop ]]; then
            tell D "$(<"$step/id")" 1 0 CANCELLED 'another run asked this one to stop'
            return 1
        fi
        status=0
        run_step "${step%/}" || status=$?
        if ((status != 0)); then
            return "$status"
        fi
    done
}

# finish STATUS: secrets are gone before anybody hears that the batch ended.
finish() {
    rm -rf "$dir"/steps/*/values "$dir"/steps/*/files "$dir/reserve"
    tell E "$1"
    sync -d "$dir/events"
    echo "$1" | save "$dir/result"
}

tell_busy() {
    local step who by_batch by_step since ids=("$dir"/steps/*/id)
    step=$(<"${ids[0]}")
    IFS=$'\t' read -r who by_batch by_step since <"$base/lock" || :
    tell D "$step" 1 0 HOST_BUSY "${who:-somebody} holds this host: batch ${by_batch:-?}, step ${by_step:-?}, since ${since:-?}"
}

# Batches that did not end by themselves may have left processes (the runner was killed) and secrets (the host went down).
tidy() {
    local old
    for old in "$base"/run/*/started; do
        old=${old%/started}
        if [[ $old != "$dir" ]]; then
            if [[ ! -e $old/result ]]; then
                systemctl stop "kgpu-${old##*/}" 2>/dev/null || :
            fi
            rm -rf "$old"/steps/*/{values,files,out}
        fi
    done
    # This batch is not for the clock to judge, which may have gone back.
    find "$base/run" -mindepth 1 -maxdepth 1 -type d ! -name "$batch" -printf '%T@ %p\n' | sort --numeric-sort --reverse |
        tail --lines="+$keep_batches" | cut --delimiter=' ' --fields=2- | xargs --no-run-if-empty -d '\n' rm -rf
}

# forget removes everything that kgpu keeps here. A lock on the cluster lasts until the end of the run that has it, and
# takes the rest along; one that nobody has is left of a host that went down. The folder of what the reset left goes last:
# while it is there and nobody has the lock, another reset comes back to this host.
forget() {
    cd /
    flock --nonblock "$base/operator/lock" rm -rf "$base/operator" 2>/dev/null || :
    find "$base" -mindepth 1 -maxdepth 1 ! -name operator ! -name left ! -name lock -exec rm -rf {} +
    rm -rf "$base/left" "$base/lock"
    rmdir "$base" 2>/dev/null || :
}

main() {
    local status=0
    cd "$dir"
    touch events
    exec 8>>alive
    flock 8
    (set -o noclobber && : >started) 2>/dev/null || exit 0

    exec 9>>"$base/lock"
    if ! flock --nonblock 9; then
        tell_busy
        finish 1
        exit 0
    fi
    tidy
    rm -f "$base/forget" # of a reset that was cut off: this batch may not be one
    make_reserve
    make_scratch
    run_steps || status=$?
    drop_scratch
    finish "$status"
    if [[ -e $base/forget ]]; then
        exec 7>>following
        flock --wait 10 7 || : # those who follow have opened the events
        forget
    fi
}

main
