# shellcheck shell=bash
# Tells who has an address, and which VRRP routers are heard. After the script, its input has a line "ADDRESS SOURCE": the address, and the
# host's own one beside it. It prints answers=MAC for a machine that answers ARP for the address, vrrp=ID SOURCE for each router that
# says so to all, and vrrp-deaf=1 where this host cannot listen, between kgpu-virtual-ip=1 and end=1. It is read by `bash -s` as root and
# changes nothing but what the kernel remembers of that address.
set -u

# arp ADDRESS asks for the machine with an address, as anything that is sent there does. What the kernel remembers of one, which may have
# gone, it forgets before.
arp() {
  local line
  timeout 5 ip -4 neighbour flush to "$1" 2>/dev/null
  for _ in 1 2 3; do
    (printf x >"/dev/udp/$1/9") 2>/dev/null
    sleep 0.7
    line=$(timeout 5 ip -4 neighbour show to "$1")
    if [[ $line != *FAILED* && $line != *INCOMPLETE* && $line =~ lladdr\ ([0-9a-f:]+) ]]; then
      printf 'answers=%s\n' "${BASH_REMATCH[1]}"
      return
    fi
  done
}

# listen SOURCE hears for four seconds what VRRP routers (protocol 112) say to 224.0.0.18. perl is on every Debian and Ubuntu.
listen() {
  # shellcheck disable=SC2016 # perl's
  timeout 10 perl -e '
    socket(my $s, 2, 3, 112) or exit 1;
    setsockopt($s, 0, 35, pack("C4 C4", 224, 0, 0, 18, split(/\./, $ARGV[0]))) or exit 1;
    my ($end, %heard) = (time + 4);
    while (time < $end) {
      my $in = "";
      vec($in, fileno($s), 1) = 1;
      next unless select($in, undef, undef, 0.5) > 0;
      defined(recv($s, my $packet, 1500, 0)) or next;
      my $head = 4 * (ord($packet) & 15);
      next if length($packet) < $head + 4;
      my ($kind, $id) = unpack("C2", substr($packet, $head, 2));
      printf("vrrp=%d %s\n", $id, join(".", unpack("C4", substr($packet, 12, 4)))) if ($kind & 15) == 1 && !$heard{$id}++;
    }' "$1" 2>/dev/null || echo vrrp-deaf=1
}

look() {
  local address source
  read -r address source
  echo kgpu-virtual-ip=1
  listen "$source" &
  arp "$address"
  wait
  echo end=1
}

look; exit # on one line: bash has read no further, and what follows is not for bash
