package facts

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// keyrings reads lines of stat, "1795582442 PATH", and of gpg's colon listing, "PATH=pub:-:…".
func keyrings(a answer, h *Host) error {
	for _, line := range a["keyring"] {
		changed, path, _ := strings.Cut(line, " ")
		if path == "" {
			return bad("keyring", line, errors.New("no path"))
		}
		put(&h.Keyrings, path, Keyring{Accepted: unix(changed)})
	}
	listings := map[string][][]string{}
	for _, line := range a["keyring-key"] {
		path, record, _ := strings.Cut(line, "=")
		if f := strings.Split(record, ":"); len(f) > 11 || f[0] == "fpr" && len(f) > 9 {
			listings[path] = append(listings[path], f)
		}
	}
	for path, k := range h.Keyrings {
		k.Keys = keys(listings[path])
		h.Keyrings[path] = k
	}
	return nil
}

// keys reads gpg's records of keys. A key that can sign has an s among its capabilities, and no subkey outlives its
// primary key.
// Source: doc/DETAILS of GnuPG, "Format of the colon listings".
func keys(records [][]string) []Key {
	var list []Key
	var primary time.Time
	signs := false
	for _, f := range records {
		switch f[0] {
		case "pub":
			list, signs = append(list, Key{}), false
		case "sub":
		case "fpr":
			if n := len(list); n > 0 && list[n-1].Fingerprint == "" {
				list[n-1].Fingerprint = f[9]
			}
			continue
		default:
			continue
		}
		if len(list) == 0 {
			continue
		}
		until := unix(f[6])
		key := &list[len(list)-1]
		if f[0] == "pub" {
			primary, key.Until = until, until
		}
		if !strings.Contains(f[11], "s") {
			continue
		}
		until = earlier(until, primary)
		if !signs || until.IsZero() || !key.Until.IsZero() && until.After(key.Until) {
			key.Until = until
		}
		signs = true
	}
	return list
}

// earlier is the earlier of two expiry times. Zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// unix reads seconds since 1970; zero if s is none, as gpg writes dates after 2106 differently.
func unix(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0)
}
