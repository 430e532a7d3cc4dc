package report

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/report/schema/schematest"
)

func diagnosis() *Diagnosis {
	return &Diagnosis{
		Cluster: "lab", Time: time.Date(2026, 11, 20, 13, 26, 14, 0, time.UTC),
		Hosts: []Examined{
			{Host: "control", Role: "control-plane", Reached: true},
			{Host: "gpu1", Role: "worker", Reached: true, Cards: 2, Findings: []doctor.Finding{
				{ID: "HOST_HOLD_LOST", Severity: doctor.Warning, Host: "gpu1", Evidence: []string{"no longer held: kubelet"}, Cause: "Nobody holds it.", Fix: "hold it", Repair: doctor.Hold},
			}},
			{Host: "gpu2", Role: "worker", Reached: true, Cards: 4},
			{Host: "gpu3", Role: "worker", Findings: []doctor.Finding{
				{ID: "SSH_UNREACHABLE", Severity: doctor.Error, Host: "gpu3", Evidence: []string{"connection \x1b[2Jrefused"}, Cause: "It is off.", Fix: "turn it on"},
				{ID: "NODE_NOT_READY", Severity: doctor.Warning, Host: "gpu3", Cause: "It says nothing.", Fix: "ask it"},
			}},
		},
	}
}

func TestPrintDiagnosis(t *testing.T) {
	var out bytes.Buffer
	must(t, PrintDiagnosis(&out, diagnosis()))
	golden(t, "doctor.txt", out.String())
	out.Reset()
	if err := PrintDiagnosis(&out, &Diagnosis{Hosts: diagnosis().Hosts[:1]}); err != nil || out.String() != "healthy: control\n0 of 1 host with findings: 0 errors, 0 warnings\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}

// What is printed is what the published schema says, with and without findings, and whatever rows there are.
func TestDiagnosisJSON(t *testing.T) {
	all := diagnosis()
	for _, r := range doctor.Catalogue() {
		all.Hosts[0].Findings = append(all.Hosts[0].Findings, doctor.Finding{ID: r.ID, Severity: r.Severity, Cause: r.Cause, Fix: r.Fix, Repair: r.Repair})
	}
	for _, d := range []*Diagnosis{diagnosis(), all, {Cluster: "empty"}} {
		var out bytes.Buffer
		must(t, DiagnosisJSON(&out, d))
		schematest.Printed(t, "doctor", out.String())
	}
	var got diagnosisJSON
	var out bytes.Buffer
	must(t, DiagnosisJSON(&out, diagnosis()))
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Errors != 1 || got.Warnings != 2 || len(got.Hosts) != 4 || got.Hosts[3].Findings[0].ID != "SSH_UNREACHABLE" {
		t.Errorf("%v: %+v", err, got)
	}
}
