package timeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/plan"
)

// drawn parses the page of these events.
func drawn(t *testing.T, events []event.Event) (*html.Node, string) {
	t.Helper()
	var out bytes.Buffer
	must(t, Page(&out, model(t, events)))
	document, err := html.Parse(bytes.NewReader(out.Bytes()))
	must(t, err)
	return document, out.String()
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text is all text in n.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// elements are those of a class, in order.
func elements(document *html.Node, class string) (out []*html.Node) {
	for n := range document.Descendants() {
		if n.Type == html.ElementNode && strings.Contains(" "+attribute(n, "class")+" ", " "+class+" ") {
			out = append(out, n)
		}
	}
	return out
}

// outside is what would be fetched from somewhere.
var outside = regexp.MustCompile(`(?i)url\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|import\(|https?:`)

func TestNothingFromOutside(t *testing.T) {
	document, _ := drawn(t, three())
	for n := range document.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "link", "img", "iframe", "object", "embed", "base", "form", "video", "audio", "a":
			t.Errorf("there is a <%s>", n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" || a.Key == "srcset" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
		if n.Data == "style" || n.Data == "script" && attribute(n, "type") == "" {
			if found := outside.FindString(text(n)); found != "" {
				t.Errorf("<%s> has %q", n.Data, found)
			}
		}
	}
}

// TestBars wants a bar for each step, at its place, a row for each host, and what is told of the bars.
func TestBars(t *testing.T) {
	document, _ := drawn(t, three())
	var rows []string
	for _, n := range elements(document, "row") {
		rows = append(rows, text(elements(n, "host")[0]))
	}
	if got := strings.Join(rows, " "); got != "control-1 gpu-1 gpu-2" {
		t.Errorf("the rows are %s", got)
	}
	done := 0
	for _, e := range three() {
		if e.Kind == event.StepDone {
			done++
		}
	}
	bars := elements(document, "bar")
	if len(bars) != done {
		t.Errorf("%d bars of %d steps", len(bars), done)
	}
	told := details(t, document)
	for _, n := range bars {
		i, err := strconv.Atoi(attribute(n, "data-n"))
		if err != nil || i >= len(told) || told[i].Title == "" || told[i].Where == "" {
			t.Fatalf("a bar with the number %q: %v", attribute(n, "data-n"), err)
		}
		if !strings.Contains(attribute(n, "aria-label"), " on ") || n.Data != "button" {
			t.Errorf("a <%s> that says %q", n.Data, attribute(n, "aria-label"))
		}
		if style := attribute(n, "style"); !regexp.MustCompile(`^left:[0-9.]+%;width:[0-9.]+%;top:\d+px$`).MatchString(style) {
			t.Errorf("a bar at %q", style)
		}
	}
	init := elements(document, "critical")[7]
	if got := text(init); got != "cluster/init31.2 s" {
		t.Errorf("the eighth on the critical path is %q", got)
	}
	i, _ := strconv.Atoi(attribute(init, "data-n"))
	if d := told[i]; d.Where != "control-1 · cluster/init" || d.State != "done after 31.2 s" || !strings.Contains(d.Log, "The API server is healthy") ||
		strings.Join(d.Facts, " ") != "On the critical path. Why: no control plane is there" {
		t.Errorf("%+v", d)
	}
	for _, class := range []string{"wait", "within", "look", "stages"} {
		if len(elements(document, class)) == 0 {
			t.Errorf("nothing of the class %s", class)
		}
	}
}

func details(t *testing.T, document *html.Node) (out []detail) {
	t.Helper()
	for n := range document.Descendants() {
		if n.Type == html.ElementNode && attribute(n, "id") == "details" {
			must(t, json.Unmarshal([]byte(text(n)), &out))
		}
	}
	return out
}

func TestFailure(t *testing.T) {
	document, _ := drawn(t, forty())
	if n := len(elements(document, "s-failed")); n != 1 {
		t.Errorf("%d failed bars", n)
	}
	failures := elements(document, "failure")
	if len(failures) != 1 {
		t.Fatalf("%d failures", len(failures))
	}
	for _, want := range []string{"gpu-17", "runtime/containerd", "REPO_UNREACHABLE", "connection timed out", "Reading package lists"} {
		if !strings.Contains(text(failures[0]), want) {
			t.Errorf("the failure does not say %q", want)
		}
	}
	if n := len(elements(document, "row")); n != 40 {
		t.Errorf("%d rows", n)
	}
}

// TestEnding holds the word for how a run ended: its reason, else what became of it, where that is known.
func TestEnding(t *testing.T) {
	whole := three()
	for _, c := range []struct {
		events     []event.Event
		fate, want string
	}{{whole, "", "ok"}, {whole, "killed", "ok"}, {whole[:len(whole)-1], "killed", "killed"}, {whole[:len(whole)-1], "", "no end told"}} {
		m := model(t, c.events)
		m.Fate = c.fate
		if got := newPage(m).Ending; got != c.want {
			t.Errorf("%d of %d events, %q: %q, want %q", len(c.events), len(whole), c.fate, got, c.want)
		}
	}
}

// TestTwoHundredHosts holds the page of a large run within what a browser opens at once.
func TestTwoHundredHosts(t *testing.T) {
	document, page := drawn(t, many(200))
	if n := len(elements(document, "row")); n != 200 {
		t.Errorf("%d rows", n)
	}
	if len(elements(document, "crowded")) != 1 {
		t.Error("the rows are not low")
	}
	if len(page) > 3<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// TestHostile puts what would end a script, an attribute or a style into all that a host can say.
func TestHostile(t *testing.T) {
	begun := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for _, evil := range []string{
		`</script><script>alert(1)</script>`, `<!--<script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `]]>`, "\u2028\u2029",
		`;} body{background:url(http://example.com)}`, `{{.Title}}`, `<svg/onload=alert(1)>`, `&lt;b&gt;`,
	} {
		events := []event.Event{
			{Kind: event.Begin, Text: evil},
			{Kind: event.Plan, Plan: []event.Planned{{Host: evil, Step: evil, Title: evil, Reason: evil}}},
			{Host: evil, Kind: event.Command, Text: evil, Millis: 100},
			{Host: evil, Step: evil, Kind: event.Wait, Text: evil},
			{Host: evil, Step: evil, Kind: event.StepStart, Text: evil},
			{Host: evil, Step: evil, Kind: event.Wait, Text: evil},
			{Host: evil, Step: evil, Kind: event.Log, Text: evil},
			{Host: evil, Step: evil, Kind: event.Error, Text: evil, Reason: evil},
			{Host: evil, Step: evil, Kind: event.StepSkip, Text: evil, Reason: evil},
			{Host: evil, Kind: event.Warning, Text: evil},
			{Host: evil, Kind: event.Error, Text: evil, Reason: evil},
			{Kind: event.Result, Text: evil, Reason: evil},
		}
		for i := range events {
			events[i].Time, events[i].Run = begun.Add(time.Duration(i)*time.Second), evil
		}
		m, err := Of(slices.Values(events), evil)
		must(t, err)
		var out bytes.Buffer
		must(t, Page(&out, m))
		document, err := html.Parse(bytes.NewReader(out.Bytes()))
		must(t, err)
		plainDocument, _ := drawn(t, three())
		known := names(plainDocument)
		for name := range names(document) {
			if !known[name] && name != "article" && name != "h3" && name != "time" && name != "pre tabindex" && name != "pre aria-label" && name != "pre" && name != "em" {
				t.Errorf("%q makes %s", evil, name)
			}
		}
		scripts := 0
		for n := range document.Descendants() {
			if n.Type == html.ElementNode && n.Data == "script" {
				scripts++
			}
		}
		if scripts != 2 {
			t.Errorf("%q: %d scripts", evil, scripts)
		}
		if told := details(t, document); len(told) == 0 || told[len(told)-1].Title != evil {
			t.Errorf("%q is told as %+v", evil, told)
		}
		must(t, Trace(&out, m))
	}
}

// names are a page's elements, and their attributes.
func names(document *html.Node) map[string]bool {
	out := map[string]bool{}
	for n := range document.Descendants() {
		if n.Type == html.ElementNode {
			out[n.Data] = true
			for _, a := range n.Attr {
				if a.Key != "class" && a.Key != "style" {
					out[n.Data+" "+a.Key] = true
				}
			}
		}
	}
	return out
}

// TestPolicy holds that the page's own script is the one that it allows, and that nothing else is.
func TestPolicy(t *testing.T) {
	document, _ := drawn(t, three())
	for n := range document.Descendants() {
		if n.Data == "meta" && attribute(n, "http-equiv") != "" {
			policy := attribute(n, "content")
			if !strings.HasPrefix(policy, "default-src 'none';") || !strings.Contains(policy, "script-src 'sha256-") || strings.Contains(policy, "script-src 'unsafe-inline'") {
				t.Errorf("the policy is %s", policy)
			}
		}
		if n.Data == "script" && attribute(n, "type") == "" && text(n) != pageScript {
			t.Error("the script is another one than the policy's")
		}
	}
}

var (
	variable = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6})`)
	theme    = regexp.MustCompile(`(?s):root \{(.*?)\n *\}`)
)

// TestContrast holds the colours of both themes against WCAG 2.2 AA: 4.5 for text, 3 for what is drawn.
func TestContrast(t *testing.T) {
	themes := theme.FindAllStringSubmatch(pageStyle, -1)
	if len(themes) < 2 {
		t.Fatal("no themes are found")
	}
	for i, name := range []string{"light", "dark"} {
		colour := map[string]string{}
		for _, v := range variable.FindAllStringSubmatch(themes[i][1], -1) {
			colour[v[1]] = v[2]
		}
		want := func(least float64, front string, backs ...string) {
			for _, back := range backs {
				if colour[front] == "" || colour[back] == "" {
					t.Fatalf("%s: no %s or no %s", name, front, back)
				}
				if got := contrast(t, colour[front], colour[back]); got < least {
					t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, front, back, got, least)
				}
			}
		}
		want(4.5, "ink", "paper", "raised", "faint")
		want(4.5, "quiet", "paper", "raised")
		want(4.5, "good", "good-tint", "paper")
		want(4.5, "bad", "bad-tint", "paper", "raised")
		want(4.5, "on-bad", "bad")
		want(4.5, "path", "paper")
		want(3, "path", "raised")
		want(3, "hatch", "raised")
		want(3, "focus", "raised")
		for _, g := range []string{"system", "runtime", "kube", "cluster", "driver", "gpu", "other"} {
			want(4.5, "on-tint", g+"-tint")
			want(4.5, "on-strong", g)
			want(3, g, "raised", g+"-tint")
		}
	}
}

// contrast is that of WCAG, of two colours as #rrggbb.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(colour string) float64 {
		var part [3]int
		if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &part[0], &part[1], &part[2]); err != nil {
			t.Fatal(err)
		}
		var l float64
		for i, weight := range []float64{.2126, .7152, .0722} {
			c := float64(part[i]) / 255
			if c <= .04045 {
				c /= 12.92
			} else {
				c = math.Pow((c+.055)/1.055, 2.4)
			}
			l += weight * c
		}
		return l
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		total  int64
		most   int
		count  int
		second string
	}{
		{0, 9, 1, ""}, {900, 9, 1, ""}, {181000, 9, 7, "0:30"}, {181000, 144, 91, "0:02"}, {3 * 3600_000, 9, 7, "30:00"}, {30 * 86400_000, 9, 8, "96:00:00"},
	} {
		got := ticks(c.total, c.most)
		if len(got) != c.count || len(got) > 1 && got[1].Label != c.second {
			t.Errorf("%d ms, %d: %d ticks, %+v", c.total, c.most, len(got), got[:min(3, len(got))])
		}
	}
}

// Each kind of step has its group, those of steps that are no part of a cluster's making the last one; records of former versions
// of kgpu, in which steps had other names, keep theirs.
func TestGroups(t *testing.T) {
	want := map[string]string{
		"addon": "cluster", "certs": "cluster", "cluster": "cluster", "dashboard": "other", "doctor": "other", "driver": "driver", "gpu": "gpu", "host": "system", "kube": "kube",
		"network": "cluster", "node": "cluster", "os": "system", "repo": "system", "runtime": "runtime", "user": "other", "backup": "other", "restore": "cluster",
	}
	for _, id := range append(plan.Kinds.IDs(), "driver/drain/w1", "driver/uncordon/w1", "network/flannel", "gpu/notebook", "dashboard/deploy") {
		family, _, _ := strings.Cut(id, "/")
		if got := groupOf(id).Class; got != want[family] {
			t.Errorf("%s is in the group %q", id, got)
		}
	}
}
