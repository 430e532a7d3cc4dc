package plan

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// OfferQuestions are the lines in which hosts that are to get Kubernetes are asked what their repositories have, by host ID, before
// anything is changed on them: which patches of it, of minors that pkgs.k8s.io has, and which containerd. scripts/reach.sh reads them.
func OfferQuestions(inv *inventory.Inventory, seen map[string]*facts.Host) (map[string][]string, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	source := b.kubernetesSource(b.Inventory.Kubernetes.Version.MinorString())
	kubernetes := append([]string{"kubernetes", b.Inventory.Kubernetes.Version.MinorString(), source.URL, strings.Join(source.Fingerprints, ","), source.KeyURL}, source.SameKeyURLs...)
	for _, h := range b.hosts {
		var questions []string
		if b.Minor.Published() && !b.Keeps(h.Machine) {
			questions = append(questions, strings.Join(kubernetes, " "))
		}
		if b.Inventory.Runtime == inventory.Containerd && !b.hasRuntimePackage(h) {
			docker := b.dockerRepository(h)
			questions = append(questions, strings.Join([]string{"containerd", docker.source.URL, strings.Join(docker.source.Fingerprints, ","), docker.source.KeyURL, docker.suite}, " "))
		}
		if len(questions) == 0 {
			continue
		}
		for line := range strings.Lines(aptProxy(b.Inventory.Proxy)) {
			questions = append(questions, "apt "+strings.TrimSuffix(line, "\n"))
		}
		out[h.id] = questions
	}
	return out, nil
}

// ChooseVersion is the inventory with the version of Kubernetes that a new cluster gets, and what the plan says of it: the newest
// patch that the repositories of all hosts that were asked have, by what they answered. Where they have none in common, the control
// plane decides. Where nobody knows, it is the catalog's. A running cluster's version, and what the inventory fixes, stay.
func ChooseVersion(inv *inventory.Inventory, seen map[string]*facts.Host, offers map[string]*facts.AvailableVersions) (chosen *inventory.Inventory, why string) {
	set := machine.SetOf(inv, seen)
	minor, known := catalog.Kubernetes(inv.Kubernetes.Version.Minor)
	if set.First == nil || !set.Versions.Running.IsZero() || inv.Kubernetes.Pin == inventory.PinnedExact || !known || !minor.Published() {
		return inv, ""
	}
	from := "pkgs.k8s.io"
	if u, err := url.Parse(inv.Repositories.Kubernetes.URL); err == nil && u.Host != "" {
		from = u.Host
	}
	var common []catalog.Version
	var untold []string
	asked, lacking := 0, ""
	for _, m := range set.Machines {
		offer := offers[m.ID()]
		switch {
		case offer == nil:
			continue
		case len(offer.Versions) == 0:
			untold = append(untold, m.ID()+": "+offer.Why)
			continue
		case asked == 0:
			common = slices.Clone(offer.Versions)
		default:
			newest := common
			common = slices.DeleteFunc(slices.Clone(common), func(v catalog.Version) bool { return !slices.Contains(offer.Versions, v) })
			if len(common) == 0 || common[0] != newest[0] {
				lacking = " that all hosts have there"
			}
		}
		asked++
	}
	if len(common) == 0 && offers[set.First.ID()] != nil {
		common = offers[set.First.ID()].Versions
	}
	day := catalog.AsOf.Format(time.DateOnly)
	if len(common) == 0 {
		why = fmt.Sprintf("Kubernetes %s, of kgpu's catalog of %s: which patches %s offers is not known", inv.Kubernetes.Version, day, from)
		if len(untold) > 0 {
			why += " (" + untold[0] + ")"
		}
		return inv, why
	}
	settled := *inv
	settled.Kubernetes.Version = common[0]
	why = fmt.Sprintf("Kubernetes %s, the newest patch that %s offers%s; ", common[0], from, lacking)
	switch proven, ok := minor.Tested(); {
	case !ok:
		return &settled, why + "kgpu was proven with none of " + common[0].MinorString() + " by " + day
	case proven == common[0]:
		return &settled, why + "kgpu was proven with it"
	default:
		return &settled, why + fmt.Sprintf("kgpu was proven with %s, by %s", proven, day)
	}
}
