package catalog

import (
	"slices"
	"time"
)

// Term is how long NVIDIA supports a branch.
type Term string

const (
	LongTerm   Term = "long-term"   // three years
	Production Term = "production"  // one year
	NewFeature Term = "new feature" // until the next branch
)

// DriverBranch is a release branch of NVIDIA's driver.
type DriverBranch struct {
	Number int
	Term   Term
	End    time.Time                  // last day with fixes, midnight UTC; zero if it is not known yet
	Runs   map[Architecture][]Flavour // supported architectures → flavours, best first
}

var (
	proprietary = []Flavour{Proprietary}
	open        = []Flavour{Open}
	both        = []Flavour{Open, Proprietary}
	closedFirst = []Flavour{Proprietary, Open}

	openOnly  = map[Architecture][]Flavour{Turing: open, Ampere: open, Ada: open, Hopper: open, Blackwell: open, Rubin: open}
	openFirst = map[Architecture][]Flavour{Turing: both, Ampere: both, Ada: both, Hopper: both, Blackwell: open, Rubin: open}
	beforeGSP = map[Architecture][]Flavour{
		Maxwell: proprietary, Pascal: proprietary, Volta: proprietary,
		Turing: closedFirst, Ampere: closedFirst, Ada: closedFirst, Hopper: closedFirst,
	}
)

// driverBranches, best first: the long-term branches, then those that get fixes for longer, then those that ended.
// Sources. Terms and ends: docs.nvidia.com/datacenter/tesla/drivers/620/supported-drivers-and-cuda-toolkit-versions (580, 595, 620:
// "June 2028", "March 2027", "September 2029"; new feature branches have no date) and its edition for 615 (535, 610); 550 and 470:
// endoflife.date/nvidia-driver. A month without a day ends with its last one.
// Flavours: the driver installation guide, "Kernel modules": Blackwell and newer need the open modules, Turing and newer may have
// them, Maxwell to Volta cannot; the 590 branch dropped Maxwell, Pascal and Volta; from 615 on there are open modules only (release
// notes of 615.71.09; the guide's edition for 620, "Proprietary Kernel Modules Removed"); 470 is the last one for Kepler. Before 560
// the proprietary modules were NVIDIA's default everywhere.
var driverBranches = []DriverBranch{
	{580, LongTerm, day("2028-06-30"), map[Architecture][]Flavour{
		Maxwell: proprietary, Pascal: proprietary, Volta: proprietary,
		Turing: both, Ampere: both, Ada: both, Hopper: both, Blackwell: open,
	}},
	{620, LongTerm, day("2029-09-30"), openOnly},
	{595, Production, day("2027-03-31"), openFirst},
	{615, NewFeature, time.Time{}, openOnly},
	{610, NewFeature, day("2026-08-31"), openFirst},
	{550, Production, day("2025-04-17"), beforeGSP},
	{535, LongTerm, day("2026-06-30"), beforeGSP},
	{470, LongTerm, day("2024-07-20"), map[Architecture][]Flavour{
		Kepler: proprietary, Maxwell: proprietary, Pascal: proprietary, Volta: proprietary, Turing: proprietary, Ampere: proprietary,
	}},
}

// DriverBranches returns the numbers of the branches that kgpu knows.
func DriverBranches() []int {
	var out []int
	for _, b := range driverBranches {
		out = append(out, b.Number)
	}
	return out
}

// LookupDriverBranch returns the branch with this number.
func LookupDriverBranch(number int) (DriverBranch, bool) {
	return find(driverBranches, func(b DriverBranch) bool { return b.Number == number })
}

// Ended reports whether the branch had reached its end at AsOf.
func (b DriverBranch) Ended() bool { return !b.End.IsZero() && b.End.Before(AsOf) }

// Support tells how long there are fixes: "long-term branch, fixes until June 2028".
func (b DriverBranch) Support() string {
	const month = "January 2006"
	switch {
	case b.Ended():
		return string(b.Term) + " branch, the last fixes came in " + b.End.Format(month)
	case b.End.IsZero():
		return string(b.Term) + " branch, fixes until the next one comes"
	}
	return string(b.Term) + " branch, fixes until " + b.End.Format(month)
}

// Flavours returns the flavours in which the branch runs all of the architectures, best first; nil if it does not run
// all.
func (b DriverBranch) Flavours(all []Architecture) []Flavour {
	if len(all) == 0 {
		return both
	}
	common := slices.Clone(b.Runs[all[0]])
	for _, a := range all {
		common = slices.DeleteFunc(common, func(f Flavour) bool { return !slices.Contains(b.Runs[a], f) })
	}
	return common
}
