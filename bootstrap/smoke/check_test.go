package smoke

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"kgpu.dev/kgpu/bootstrap/reason"
)

var lab = []Node{
	{Name: "cp1"},
	{Name: "w1", GPUs: cards("w1", 2, "NVIDIA A100-SXM4-40GB")},
	{Name: "w2", GPUs: cards("w2", 1, "Tesla T4")},
}

// saw is the log of a Job in which nvidia-smi lists these cards, and one computes.
func saw(uuids ...string) string {
	var b strings.Builder
	for i, uuid := range uuids {
		fmt.Fprintf(&b, "GPU %d: NVIDIA A100-SXM4-40GB (UUID: %s)\n", i, uuid)
	}
	b.WriteString("kgpu-status 0\n")
	for i := range uuids {
		fmt.Fprintf(&b, "kgpu-device /dev/nvidia%d\n", i)
	}
	return b.String() + computed + "kgpu-end\n"
}

// computed is what a pod tells of a card that computes.
const computed = "kgpu-sample 0\nkgpu-said [Vector addition of 50000 elements]\nkgpu-said Test PASSED\nkgpu-said Done\n"

const (
	noProgram = "timeout: failed to run command 'nvidia-smi': No such file or directory\nkgpu-status 127\nkgpu-end\n"
	noDevices = "No devices found.\nkgpu-status 0\nkgpu-end\n"
)

// logs puts the logs of all Jobs together, with these changed; an empty one is left out.
func logs(changed map[string]string) string {
	all := map[string]string{
		"smi-w1-0": saw("GPU-w1-1"), "smi-w1-1": saw("GPU-w1-0"), "none-w1": noDevices, "plain-w1": noProgram,
		"smi-w2-0": saw("GPU-w2-0"), "none-w2": noProgram, "plain-w2": noProgram,
	}
	var b strings.Builder
	for job, log := range changed {
		all[job] = log
	}
	for job, log := range all {
		for line := range strings.Lines(log) {
			b.WriteString(job + "\t" + line)
		}
	}
	return b.String()
}

// String is the table as a person reads it.
func (t *Table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tGPU\tUUID\tJOB")
	for _, r := range t.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Node, r.Card, r.UUID, r.By())
	}
	w.Flush() // a strings.Builder takes everything
	return b.String()
}

func TestProofOfAllGPUs(t *testing.T) {
	table, err := CheckProof(lab, logs(nil))
	must(t, err)
	const want = "" +
		"NODE  GPU                    UUID      JOB\n" +
		"w1    NVIDIA A100-SXM4-40GB  GPU-w1-0  smi-w1-1\n" +
		"w1    NVIDIA A100-SXM4-40GB  GPU-w1-1  smi-w1-0\n" +
		"w2    Tesla T4               GPU-w2-0  smi-w2-0\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestGPUHeldByAnotherPod: a GPU that a pod outside of the proof holds is reported and is no violation, one that nobody
// holds is.
func TestGPUHeldByAnotherPod(t *testing.T) {
	const by = "kgpu-held default/train-0\nkgpu-held kgpu-notebook/notebook-5f-x7\n"
	rows := func(changed map[string]string) (*Table, string) {
		table, err := CheckProof(lab, logs(changed))
		if err != nil {
			var got []string
			for _, e := range reason.All(err) {
				got = append(got, e.Host+" "+string(e.ID)+" "+e.Detail)
			}
			return nil, strings.Join(got, "\n")
		}
		return table, table.String()
	}
	const header = "NODE  GPU                    UUID      JOB\n"
	_, got := rows(map[string]string{"smi-w1-0": by, "smi-w1-1": saw("GPU-w1-0")})
	want := header +
		"w1    NVIDIA A100-SXM4-40GB  GPU-w1-0  smi-w1-1\n" +
		"w1    NVIDIA A100-SXM4-40GB  GPU-w1-1  held by default/train-0, kgpu-notebook/notebook-5f-x7, not tried\n" +
		"w2    Tesla T4               GPU-w2-0  smi-w2-0\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}

	// All cards of a node, and the notebook tells which one it has.
	table, got := rows(map[string]string{"smi-w1-0": by, "smi-w1-1": by, "smi-w2-0": "kgpu-held \x1b[2Jx/y\n"})
	if table == nil {
		t.Fatal(got)
	}
	table.AddHolder("kgpu-notebook", "the notebook", []string{"GPU-w9-0"})
	if table.String() != got {
		t.Errorf("another card changes the table:\n%s", table)
	}
	table.AddHolder("kgpu-notebook", "the notebook", []string{"GPU-w1-1"})
	want = header +
		"w1    NVIDIA A100-SXM4-40GB  GPU-w1-0  held by default/train-0, not tried\n" +
		"w1    NVIDIA A100-SXM4-40GB  GPU-w1-1  the notebook\n" +
		"w2    Tesla T4               GPU-w2-0  held by \\x1b[2Jx/y, not tried\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}

	_, got = rows(map[string]string{"smi-w1-0": "kgpu-held default/train-0\n", "smi-w1-1": "kgpu-held\n" + noDevices}) // the pod's own word
	if want := "w1 SMOKE_FAILED Job smi-w1-1 asked for a GPU and sees none: \"No devices found.\"\n" +
		"w1 SMOKE_CARD_MISSING no Job saw the GPU GPU-w1-0 (NVIDIA A100-SXM4-40GB): the node has 2 GPUs unseen, and default/train-0 can have 1 of them\n" +
		"w1 SMOKE_CARD_MISSING no Job saw the GPU GPU-w1-1 (NVIDIA A100-SXM4-40GB): the node has 2 GPUs unseen, and default/train-0 can have 1 of them"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEachViolationHasItsReason(t *testing.T) {
	long := strings.Repeat("x", 60000)
	for _, c := range []struct {
		name    string
		changed map[string]string
		want    []string // host, reason and detail of each violation
	}{
		{"one card for two", map[string]string{"smi-w1-0": saw("GPU-w1-0")}, []string{
			"w1 SMOKE_CARD_TWICE the GPU GPU-w1-0 (NVIDIA A100-SXM4-40GB) is seen by the Jobs smi-w1-0, smi-w1-1",
			"w1 SMOKE_CARD_MISSING no Job saw the GPU GPU-w1-1 (NVIDIA A100-SXM4-40GB)",
		}},
		{"a Job that sees all", map[string]string{"smi-w1-0": saw("GPU-w1-1", "GPU-w1-0")}, []string{
			"w1 SMOKE_CARD_LEAKED Job smi-w1-0 asked for one GPU and sees 2: GPU-w1-1, GPU-w1-0",
			"w1 SMOKE_CARD_TWICE the GPU GPU-w1-0 (NVIDIA A100-SXM4-40GB) is seen by the Jobs smi-w1-0, smi-w1-1",
		}},
		{"device nodes that nvidia-smi hides", map[string]string{
			"smi-w2-0": "GPU 0: Tesla T4 (UUID: GPU-w2-0)\nkgpu-status 0\nkgpu-device /dev/nvidia0\nkgpu-device /dev/nvidia1\n" + computed + "kgpu-end\n",
		}, []string{
			"w2 SMOKE_CARD_LEAKED Job smi-w2-0 asked for one GPU and sees 2: /dev/nvidia0, /dev/nvidia1",
		}},
		{"a Job that sees none", map[string]string{"smi-w2-0": "No devices found.\nkgpu-status 0\nkgpu-end\n"}, []string{
			`w2 SMOKE_FAILED Job smi-w2-0 asked for a GPU and sees none: "No devices found."`,
			"w2 SMOKE_CARD_MISSING no Job saw the GPU GPU-w2-0 (Tesla T4)",
		}},
		{"a driver that does not fit", map[string]string{"smi-w2-0": "Failed to initialize NVML: Driver/library version mismatch\nkgpu-status 18\nkgpu-end\n"}, []string{
			`w2 SMOKE_FAILED nvidia-smi in Job smi-w2-0 ended with status 18: "Failed to initialize NVML: Driver/library version mismatch"`,
			"w2 SMOKE_CARD_MISSING no Job saw the GPU GPU-w2-0 (Tesla T4)",
		}},
		{"a hang", map[string]string{"smi-w2-0": "kgpu-status 124\nkgpu-end\n", "none-w2": "kgpu-status 137\nkgpu-end\n"}, []string{
			"w2 SMOKE_FAILED nvidia-smi in Job smi-w2-0 did not answer within a minute",
			"w2 SMOKE_FAILED nvidia-smi in Job none-w2 did not answer within a minute",
			"w2 SMOKE_CARD_MISSING no Job saw the GPU GPU-w2-0 (Tesla T4)",
		}},
		{"a leak to the RuntimeClass", map[string]string{"none-w1": saw("GPU-w1-0", "GPU-w1-1")}, []string{
			"w1 SMOKE_CARD_LEAKED Job none-w1 of the RuntimeClass nvidia asked for no GPU and sees GPU-w1-0, GPU-w1-1, /dev/nvidia0, /dev/nvidia1",
		}},
		{"a leak of devices without nvidia-smi", map[string]string{"plain-w2": "kgpu-status 127\nkgpu-device /dev/nvidia0\nkgpu-end\n"}, []string{
			"w2 SMOKE_CARD_LEAKED Job plain-w2 of the default runtime asked for no GPU and sees /dev/nvidia0",
		}},
		{"another node's card", map[string]string{"smi-w1-0": saw("GPU-w2-0")}, []string{
			"w1 SMOKE_FAILED Job smi-w1-0 sees the GPU GPU-w2-0, which is a GPU of w2",
			"w1 SMOKE_CARD_MISSING no Job saw the GPU GPU-w1-1 (NVIDIA A100-SXM4-40GB)",
			"w2 SMOKE_CARD_TWICE the GPU GPU-w2-0 (Tesla T4) is seen by the Jobs smi-w1-0, smi-w2-0",
		}},
		{"nobody's card", map[string]string{"smi-w2-0": saw("GPU-0")}, []string{
			"w2 SMOKE_FAILED Job smi-w2-0 sees the GPU GPU-0, which no host lists",
			"w2 SMOKE_CARD_MISSING no Job saw the GPU GPU-w2-0 (Tesla T4)",
		}},
		{"a log that is missing", map[string]string{"plain-w1": ""}, []string{"w1 SMOKE_FAILED Job plain-w1 printed nothing"}},
		{"a log that was cut", map[string]string{"none-w1": "\x1b[2Jbusy\nkgpu-status 6"}, []string{
			`w1 SMOKE_FAILED the log of Job none-w1 has no end; its last line: "\x1b[2Jbusy"`,
		}},
		{"a long line", map[string]string{"smi-w2-0": long + "\nkgpu-status 255\nkgpu-end\n"}, []string{
			`w2 SMOKE_FAILED nvidia-smi in Job smi-w2-0 ended with status 255: "` + long[:200] + `"…`,
			"w2 SMOKE_CARD_MISSING no Job saw the GPU GPU-w2-0 (Tesla T4)",
		}},
		{"escapes instead of a device", map[string]string{"plain-w2": "kgpu-device \x1b]0;owned\x07" + long + "\nkgpu-status 127\nkgpu-end\n"}, []string{
			`w2 SMOKE_CARD_LEAKED Job plain-w2 of the default runtime asked for no GPU and sees \x1b]0;owned\a` + long[:70] + "…",
		}},
		{"many devices", map[string]string{"plain-w2": strings.Repeat("kgpu-device d\n", 1000) + "kgpu-status 127\nkgpu-end\n"}, []string{
			"w2 SMOKE_CARD_LEAKED Job plain-w2 of the default runtime asked for no GPU and sees " + strings.Repeat("d, ", 15) + "d and 984 more",
		}},
		{"a UUID within other words", map[string]string{"none-w1": "see GPU 0: x (UUID: GPU-w1-0)\nGPU 0: x (UUID: GPU-w1-0) \nkgpu-status 1\nkgpu-end\n"}, nil},
		{"a line that speaks for another Job", map[string]string{"none-w1": "smi-w1-0\tGPU 0: x (UUID: GPU-w1-0)\nkgpu-status 1\nkgpu-end\n"}, nil},
		{"words after the end", map[string]string{"smi-w2-0": saw("GPU-w2-0") + "GPU 0: x (UUID: GPU-w1-0)\n"}, nil},
		{"the same card in two lines", map[string]string{"smi-w2-0": "GPU 0: x (UUID: GPU-w2-0)\r\n" + saw("GPU-w2-0")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := CheckProof(lab, logs(c.changed))
			if (table == nil) != (err != nil) {
				t.Errorf("table %v with error %v", table, err)
			}
			var got []string
			for _, e := range reason.All(err) {
				got = append(got, e.Host+" "+string(e.ID)+" "+e.Detail)
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestLogOfNoJob(t *testing.T) {
	table, err := CheckProof(lab, logs(map[string]string{"smi-w9-0": saw("GPU-w9-0")}))
	if table != nil || err == nil || !strings.Contains(err.Error(), "smi-w9-0") {
		t.Errorf("table %v, error %v", table, err)
	}
}

// logsOf are the logs of the Jobs of a node; those without a request see nothing.
func logsOf(node string, jobs ...string) string {
	var b strings.Builder
	for i, log := range append(jobs, noDevices, noProgram) {
		name := fmt.Sprintf("smi-%s-%d", node, i)
		switch i {
		case len(jobs):
			name = "none-" + node
		case len(jobs) + 1:
			name = "plain-" + node
		}
		for line := range strings.Lines(log) {
			b.WriteString(name + "\t" + line)
		}
	}
	return b.String()
}

// TestSharedGPUs: two GPUs that two pods share each.
func TestSharedGPUs(t *testing.T) {
	node := Node{Name: "w1", GPUs: cards("w1", 2, "Tesla T4")}
	for i := range node.GPUs {
		node.GPUs[i].Share = 2
	}
	a, b := saw("GPU-w1-0"), saw("GPU-w1-1")
	table, err := CheckProof([]Node{node}, logsOf("w1", a, b, b, a))
	must(t, err)
	want := []Row{
		{Node: "w1", Card: "Tesla T4", UUID: "GPU-w1-0", Job: "smi-w1-0, smi-w1-3"},
		{Node: "w1", Card: "Tesla T4", UUID: "GPU-w1-1", Job: "smi-w1-1, smi-w1-2"},
	}
	if !reflect.DeepEqual(table.Rows, want) {
		t.Errorf("%+v", table.Rows)
	}
	expect(t, node, logsOf("w1", a, a, b, a),
		"SMOKE_CARD_TWICE the GPU GPU-w1-0 (Tesla T4) is seen by the Jobs smi-w1-0, smi-w1-1, smi-w1-3",
		"SMOKE_CARD_MISSING the GPU GPU-w1-1 (Tesla T4), which 2 Jobs share, is seen only by smi-w1-2")
	// Where there are more places than Jobs, a pod of somebody shifts the balance.
	busy := Node{Name: "w1", GPUs: cards("w1", 4, "Tesla T4")}
	var logs []string
	for i, jobs := range []int{7, 8, 8, 9} {
		busy.GPUs[i].Share = 10
		for range jobs {
			logs = append(logs, saw(busy.GPUs[i].UUID))
		}
	}
	if table, err := CheckProof([]Node{busy}, logsOf("w1", logs...)); err != nil || len(table.Rows) != 4 {
		t.Errorf("%+v, %v", table, err)
	}
	for i := range logs[:7] {
		logs[i] = saw("GPU-w1-" + fmt.Sprint(1+i%3))
	}
	expect(t, busy, logsOf("w1", logs...), "SMOKE_CARD_MISSING no Job saw the GPU GPU-w1-0 (Tesla T4)",
		"SMOKE_CARD_TWICE the GPU GPU-w1-1 (Tesla T4) is seen by the Jobs smi-w1-0, smi-w1-3, smi-w1-6, smi-w1-7, smi-w1-8, smi-w1-9, smi-w1-10, smi-w1-11, smi-w1-12, smi-w1-13, smi-w1-14",
		"SMOKE_CARD_TWICE the GPU GPU-w1-3 (Tesla T4) is seen by the Jobs smi-w1-2, smi-w1-5, smi-w1-23, smi-w1-24, smi-w1-25, smi-w1-26, smi-w1-27, smi-w1-28, smi-w1-29, smi-w1-30, smi-w1-31")
	node.GPUs[0].Share, node.GPUs[1].Share = 1000, 1000
	if n := len(node.requests()); n != maxSharingJobs {
		t.Errorf("%d Jobs for cards with a thousand places each", n)
	}
}

// TestGPUThatCannotCompute: a GPU that is listed and does not compute is reported once, with the sample's output.
func TestGPUThatCannotCompute(t *testing.T) {
	did := func(status int, words string) string {
		return strings.Replace(saw("GPU-w2-0"), computed, fmt.Sprintf("kgpu-sample %d\nkgpu-said [Vector addition of 50000 elements]\nkgpu-said %s\n", status, words), 1)
	}
	const notReady = "Failed to allocate device vector A (error code system not yet initialized)!"
	const card = "SMOKE_CANNOT_COMPUTE the GPU GPU-w2-0 (Tesla T4) is listed and does not compute: vectorAdd in Job smi-w2-0 "
	node := lab[2]
	for _, c := range []struct{ name, log, want string }{
		{"the driver cannot", did(1, notReady), card + `ended with status 1: "` + notReady + `"`},
		{"sums that are wrong", did(1, "Result verification failed at element 7!"), card + `ended with status 1: "Result verification failed at element 7!"`},
		{"a program that passed nothing", did(0, "Done"), card + `ended with status 0: "Done"`},
		{"a program that passed and failed", did(1, "Test PASSED"), card + `ended with status 1: "Test PASSED"`},
		{"a hang", did(124, ""), card + "did not end within a minute"},
		{"a hang that hears nothing", did(137, ""), card + "did not end within a minute"},
		{"memory that somebody outside has", did(1, "out of memory"), card + `ended with status 1: "out of memory"`},
		{"escapes", did(1, "\x1b[2J"), card + `ended with status 1: "\x1b[2J"`},
		{"another image", did(127, "timeout: failed to run command"), `SMOKE_FAILED Job smi-w2-0 could not run its program that computes: "timeout: failed to run command"`},
		{"no program", strings.Replace(saw("GPU-w2-0"), computed, "", 1), `SMOKE_FAILED Job smi-w2-0 could not run its program that computes: ""`},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, node, logsOf("w2", c.log), c.want) })
	}
	shared := Node{Name: "w2", GPUs: []GPU{{UUID: "GPU-w2-0", Name: "Tesla T4", Share: 2}}}
	full := did(1, "Failed to allocate device vector A (error code out of memory)!")
	expect(t, shared, logsOf("w2", did(1, notReady), did(1, notReady)), card+`ended with status 1: "`+notReady+`"`)
	for _, c := range []struct{ first, want string }{
		{saw("GPU-w2-0"), "smi-w2-0, smi-w2-1"},
		{full, "smi-w2-0, smi-w2-1, not computed: its memory is all taken"},
	} {
		if table, err := CheckProof([]Node{shared}, logsOf("w2", c.first, full)); err != nil || table.Rows[0].By() != c.want {
			t.Errorf("%+v, %v, want %s", table, err, c.want)
		}
	}
}

// TestMIGInstances: a GPU that is cut into two instances, beside a whole one.
func TestMIGInstances(t *testing.T) {
	node := Node{Name: "w1", GPUs: []GPU{
		{UUID: "MIG-a", Name: "A100 MIG 1g.5gb", Resource: "nvidia.com/mig-1g.5gb"},
		{UUID: "MIG-b", Name: "A100 MIG 1g.5gb", Resource: "nvidia.com/mig-1g.5gb"},
		{UUID: "GPU-1", Name: "A100", Resource: "nvidia.com/gpu"},
	}}
	instance := func(uuids ...string) string {
		log := "GPU 0: A100 (UUID: GPU-0)\n"
		for i, uuid := range uuids {
			log += fmt.Sprintf("  MIG 1g.5gb      Device  %d: (UUID: %s)\n", i, uuid)
		}
		return log + "kgpu-status 0\nkgpu-device /dev/nvidia0\n" + computed + "kgpu-end\n"
	}
	if table, err := CheckProof([]Node{node}, logsOf("w1", instance("MIG-b"), instance("MIG-a"), saw("GPU-1"))); err != nil || len(table.Rows) != 3 {
		t.Errorf("%v, %v", table, err)
	}
	expect(t, node, logsOf("w1", instance("MIG-a", "MIG-b"), instance("MIG-a"), saw("GPU-1")),
		"SMOKE_CARD_LEAKED Job smi-w1-0 asked for one GPU and sees 2: MIG-a, MIG-b",
		"SMOKE_CARD_TWICE the GPU MIG-a (A100 MIG 1g.5gb) is seen by the Jobs smi-w1-0, smi-w1-1")
	// Whole cards are given out, cut or not.
	whole := Node{Name: "w1", GPUs: []GPU{{UUID: "GPU-0", Name: "A100"}}}
	if _, err := CheckProof([]Node{whole}, logsOf("w1", instance("MIG-a", "MIG-b"))); err != nil {
		t.Error(err)
	}
}

// expect wants these violations, each its reason and detail.
func expect(t *testing.T, node Node, logs string, want ...string) {
	t.Helper()
	_, err := CheckProof([]Node{node}, logs)
	var got []string
	for _, e := range reason.All(err) {
		got = append(got, string(e.ID)+" "+e.Detail)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
