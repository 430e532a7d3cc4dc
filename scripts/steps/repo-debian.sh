#!/usr/bin/env bash
# Adds components of the distribution's archive, from the mirror and with the key that the host has for main. Values:
# components (a line each), list (a deb822 file).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t components < <(value_lines components)
list=$(value list)
# shellcheck source=/dev/null
codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")

# paragraph FILE NUMBER prints an entry of a deb822 file, without its components.
paragraph() {
  tr -d '\r' <"$1" | awk -v number="$2" 'BEGIN { RS = ""; FS = "\n" }
    /(^|\n)[Tt]ypes:/ && ++entries == number {
      for (i = 1; i <= NF; i++) {
        if ($i ~ /^#/) continue
        if ($i !~ /^[ \t]/) skip = tolower($i) ~ /^(components|enabled):/
        if (!skip) print $i
      }
    }'
}

# line_paragraph FILE NUMBER prints a line of a sources.list as such a paragraph.
line_paragraph() {
  sed -n "${2}p" "$1" | tr -d '\r' | sed -E 's/^[[:blank:]]*deb[[:blank:]]+/Types: deb\n/; s/\n\[ *([^]]*[^] ]) *\] */\n\1\n/' | awk '
    BEGIN { field["signed-by"] = "Signed-By"; field["arch"] = "Architectures"; field["lang"] = "Languages"; field["target"] = "Targets" }
    NR == 2 && $1 ~ /=/ {
      for (i = 1; i <= NF; i++) {
        at = index($i, "="); name = tolower(substr($i, 1, at - 1)); value = substr($i, at + 1); gsub(",", " ", value)
        if (name in field) name = field[name]
        print name ": " value # of all: apt refuses two settings for one repository
      }
      next
    }
    NR > 1 { print "URIs: " $1; print "Suites: " $2; next }
    { print }'
}

# Where apt's sources have main, as FILE:NUMBER (of a line, or of an entry in deb822), and its package list.
# shellcheck disable=SC2016 # the fields are apt's
read -r main packages < <(apt-get indextargets --format '$(SOURCESENTRY) $(FILENAME)' 'Identifier: Packages' 'Component: main' "Release: $codename" 2>"$apt_log") || {
  refuse_config
  fail PACKAGE_MISSING "apt's sources have no main of ${codename:-this release}"
}
file=${main%:*} number=${main##*:}
{
  echo '# Where drivers are, written by kgpu.'
  if [[ $file == *.sources ]]; then paragraph "$file" "$number"; else line_paragraph "$file" "$number"; fi
  echo "Components: ${components[*]}"
} >"$KGPU_STEP/trial.sources"
for component in "${components[@]}"; do
  lists=${packages##*/}
  lists=${lists%%_main_*}_${component}_
  if [[ -z $(compgen -G "/var/lib/apt/lists/$lists*") ]]; then record_once lists "$lists"; fi
done
apt_beside "$KGPU_STEP/trial.sources" "$list"
apt_takes_beside "$list"
if ! apt_update_list "$KGPU_STEP/trial.sources"; then apt_failed "${components[*]} of $codename"; fi
put_file "$list" 644 <"$KGPU_STEP/trial.sources"
