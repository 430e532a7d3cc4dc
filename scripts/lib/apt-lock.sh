# shellcheck shell=bash
# The locks of apt and dpkg: who has one, and how long kgpu waits for it. It never ends the holder.

apt_locks=(/var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/cache/apt/archives/lock)
lock_told='' lock_told_at=0

# apt_holder prints the process ID of who holds a lock of apt or dpkg; fails when nobody does. A look at the kernel's
# list misses a lock when others go while it reads: who holds none is seen twice.
apt_holder() {
  look_for_holder || look_for_holder
}

look_for_holder() {
  local locks lock inode pid where fd arrow
  locks=$(</proc/locks) # in few reads: a loop alone would make one for every line
  while read -r inode lock; do
    while read -r _ arrow _ _ pid where _; do
      [[ $arrow != '->' && ${where##*:} == "$inode" ]] || continue
      for fd in /proc/"$pid"/fd/*; do
        [[ $fd -ef $lock ]] || continue
        printf '%s\n' "$pid"
        return 0
      done
    done <<<"$locks"
  done < <(stat -c '%i %n' "${apt_locks[@]}" 2>/dev/null)
  return 1
}

# process_words PID describes a process: "apt-get (pid 812, of apt-daily.service, for 4 min)".
process_words() {
  local name='another program' stat unit='' age=''
  local -a fields
  { read -r name <"/proc/$1/comm"; } 2>/dev/null || true
  unit=$(sed -nE 's#^([0-9]+:name=systemd|0:):.*/([^/]+\.(service|scope))$#, of \2#p' "/proc/$1/cgroup" 2>/dev/null | head -n 1) || true
  if { stat=$(<"/proc/$1/stat"); } 2>/dev/null; then
    read -r -a fields <<<"${stat##*) }" # from the third field on: a name may have spaces
    age=", for $(duration_words $(($(uptime_seconds) - fields[19] / $(getconf CLK_TCK))))"
  fi
  printf '%s (pid %s%s%s)\n' "$name" "$1" "$unit" "$age"
}

# duration_words SECONDS prints "42 s", "4 min" or "2 h 5 min".
duration_words() {
  if [[ $1 -lt 60 ]]; then
    printf '%s s\n' "$1"
  elif [[ $1 -lt 3600 ]]; then
    printf '%s min\n' $(($1 / 60))
  else
    printf '%s h %s min\n' $(($1 / 3600)) $(($1 % 3600 / 60))
  fi
}

# lock_waited prints for how many seconds this step waited for locks. The runner reads the account, too: the time is no
# time of the step's.
lock_waited() {
  if [[ -f $KGPU_STEP/waited ]]; then echo "$(<"$KGPU_STEP/waited")"; else echo 0; fi
}

# lock_account SECONDS makes this the account.
lock_account() {
  printf '%s\n' "$1" >"$KGPU_STEP/waited.new"
  mv "$KGPU_STEP/waited.new" "$KGPU_STEP/waited"
}

# lock_patience prints for how long this step may still wait, with what the steps before it in the batch waited.
lock_patience() {
  local limit=1800 step waited
  if [[ -f $KGPU_STEP/../../lock-timeout ]]; then read -r limit <"$KGPU_STEP/../../lock-timeout"; fi
  for step in "$KGPU_STEP"/../*/waited; do
    [[ -f $step && ! $step -ef $KGPU_STEP/waited ]] || continue
    read -r waited <"$step"
    limit=$((limit - waited))
  done
  printf '%s\n' "$limit"
}

# apt_wait [WHO] returns when nobody holds the locks. WHO is a holder that does not show here, in another container say:
# there is nothing to do but to pause and to try again.
apt_wait() {
  local pid who began before spent patience unseen=${1:-}
  apt_holder >/dev/null || [[ -n $unseen ]] || return 0
  before=$(lock_waited)
  began=$(uptime_seconds)
  patience=$(lock_patience)
  while pid=$(apt_holder) || [[ -n $unseen ]]; do
    who=$unseen
    if [[ -n $pid ]]; then who=$(process_words "$pid"); fi
    unseen=
    spent=$((before + $(uptime_seconds) - began))
    if [[ $spent -ge $patience || -e $KGPU_STEP/../../stop ]]; then
      fail HOST_APT_LOCKED "$who still holds the package manager; kgpu waited $(duration_words "$spent")"
    fi
    lock_tell "$pid" "$who" $((patience - spent))
    lock_account $((spent + 10)) # ahead of time: the runner must not end a step that waits
    sleep 2
  done
  lock_account $((before + $(uptime_seconds) - began))
}

# lock_tell PID WHO SECONDS tells who is waited for, and every half a minute that it is so still.
lock_tell() {
  local now
  now=$(uptime_seconds)
  [[ $1 != "$lock_told" || $((now - lock_told_at)) -ge 30 ]] || return 0
  waiting "the package manager, held by $2; kgpu waits for another $(duration_words "$3") at most"
  lock_told=$1 lock_told_at=$now
}

# apt_lock_lost tells whether the last program of apt or dpkg gave up because of a lock, and prints who had it.
apt_lock_lost() {
  local line
  line=$(apt_says 'Could not get lock.*(held by process|\(11: )|dpkg.*(locked by another process)') || return 1
  sed -nE 's/.*held by process ([0-9]+) \((.*)\).*/\2 (pid \1)/p; s/.*another process with pid ([0-9]+).*/a process (pid \1)/p; t; s/.*/a process that does not show/p' <<<"$line"
}

# when_free COMMAND... runs a program of apt or dpkg whose output gets into $apt_log, as soon as the locks are free.
# Somebody may be quicker: then it waits again.
when_free() {
  local began who
  while :; do
    apt_wait
    began=$(uptime_seconds)
    if "$@"; then return 0; fi
    who=$(apt_lock_lost) || return 1
    lock_account $(($(lock_waited) + $(uptime_seconds) - began))
    apt_wait "$who"
  done
}
