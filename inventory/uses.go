package inventory

import "slices"

// Use is something of this machine that an inventory makes use of. It is named, and not read.
type Use struct {
	What string   // a reference to a secret, an environment variable, or a file
	How  string   // what is done with it, before For
	For  []string // hosts and bastions as SSH is told to reach them; empty: How says all
}

// Uses lists what the inventory names of this machine: secrets, variables of the environment, keys, and files that are written.
// What SSH uses of itself, as its agent and the usual keys, is not named in it.
func (inv *Inventory) Uses() []Use {
	var uses []Use
	add := func(what, how, whom string) {
		i := slices.IndexFunc(uses, func(u Use) bool { return u.What == what && u.How == how })
		if i < 0 {
			i = len(uses)
			uses = append(uses, Use{What: what, How: how})
		}
		if whom != "" && !slices.Contains(uses[i].For, whom) {
			uses[i].For = append(uses[i].For, whom)
		}
	}
	for _, name := range inv.environment {
		add("${"+name+"}", "its value is part of the inventory, and goes where the inventory puts it", "")
	}
	for _, h := range inv.Hosts {
		at := login(h.Address, h.SSH)
		if !h.SSH.SudoPassword.IsZero() {
			add(h.SSH.SudoPassword.String(), "is given to sudo on", at)
		}
		for s := (&Bastion{h.Address, h.SSH}); s != nil; s = s.SSH.Bastion {
			at := login(s.Address, s.SSH)
			if s.SSH.Key != "" {
				add(s.SSH.Key, "is the private key, which stays here, for", at)
			}
			if !s.SSH.Passphrase.IsZero() {
				add(s.SSH.Passphrase.String(), "opens, here, the private key for", at)
			}
			if s.SSH.HostKeyPolicy == AcceptNew && s.SSH.HostKey == "" {
				file := s.SSH.KnownHosts
				if file == "" {
					file = "~/.ssh/known_hosts, or what ssh_config names"
				}
				add(file, "is written to, with keys that are not known yet of", at)
			}
		}
	}
	return uses
}

// login is how people write whom SSH logs in as. Without a user, ssh_config has one, or it is root.
func login(address string, s SSH) string {
	if s.User == "" {
		return address
	}
	return s.User + "@" + address
}
