package jupyter

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// FuzzMessage: a message of a kernel that says what it likes is one, or none.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"channel":"iopub","header":{"msg_type":"stream"},"content":{"text":"x","name":"stdout"}}`))
	f.Add([]byte(`{"header":{"msg_type":"execute_result"},"content":{"data":{"text/plain":7}}}`))
	f.Add([]byte(`{"header":{"msg_type":"status"},"content":null}`))
	f.Add([]byte(`{"header":{"msg_type":"error"},"content":{"ename":"\u001b[2J","evalue":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m message
		if json.Unmarshal(data, &m) != nil {
			return
		}
		c, err := m.content()
		if err == nil {
			c.text(m.Header.Type)
		}
		for _, s := range []string{c.Name, c.Value, m.Header.Type} {
			if short := shorten(s); len(short) > 500 || strings.ContainsFunc(short, unicode.IsControl) {
				t.Errorf("%q", short)
			}
		}
	})
}
