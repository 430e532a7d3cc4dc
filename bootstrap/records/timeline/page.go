package timeline

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"kgpu.dev/kgpu/bootstrap/event"
)

//go:embed assets/page.html
var pageText string

//go:embed assets/page.css
var pageStyle string

//go:embed assets/page.js
var pageScript string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Page writes the model as a web page: one file, which asks for nothing from elsewhere and lets nothing be asked for.
func Page(w io.Writer, m *Model) error { return pageTemplate.Execute(w, newPage(m)) }

// here is the name of the row of the machine that kgpu ran on.
const here = "kgpu"

// page is what the template shows.
type page struct {
	*Model
	Style    template.CSS
	Script   template.JS
	Policy   string // what the page may do: only its own script, and nothing over the network
	Title    string
	Good     bool
	Ending   string // the result in a word
	When     string
	Took     string
	Facts    []fact
	Rows     []row
	Height   int // of all rows, in pixels
	Low      bool
	Scales   []scale
	Lines    []line
	Groups   []group
	Critical []stage
	Waited   []waited
	Failures []failure
	Left     []left
	Remarks  []remark
	Details  []detail
}

type remark struct{ At, Kind, Host, Text string }

func newPage(m *Model) *page {
	sum := sha256.Sum256([]byte(pageScript))
	p := &page{
		Model: m, Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Policy: "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
		Title:  cmp.Or(m.Cluster, "kgpu"), Good: m.Reason == "ok", Ending: cmp.Or(m.Reason, m.Fate, "no end told"),
		When: m.Begun.Format("2 January 2006, 15:04:05 MST"), Took: long(m.Total), Low: len(m.Hosts) >= crowd,
	}
	p.rows()
	p.axis()
	p.path()
	p.waits()
	p.failures()
	p.facts()
	for _, n := range m.Notes {
		if n.Kind != event.Error {
			p.Remarks = append(p.Remarks, remark{clock(n.At), string(n.Kind), n.Host, n.Text})
		}
	}
	return p
}
