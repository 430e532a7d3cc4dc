package jupyter

import (
	"crypto/rand"
	"encoding/json"
	"time"
)

// message is one of Jupyter's messaging protocol, as a websocket without subprotocol carries it.
// Source: https://jupyter-client.readthedocs.io/en/stable/messaging.html, version 5.3, and "WebSocket kernel wire
// protocols" of jupyter_server's documentation.
type message struct {
	Channel  string          `json:"channel"`
	Header   header          `json:"header"`
	Parent   header          `json:"parent_header"`
	Metadata json.RawMessage `json:"metadata"`
	Content  json.RawMessage `json:"content"`
	Buffers  []string        `json:"buffers"`
}

type header struct {
	ID       string `json:"msg_id,omitempty"`
	Type     string `json:"msg_type,omitempty"`
	Username string `json:"username,omitempty"`
	Session  string `json:"session,omitempty"`
	Date     string `json:"date,omitempty"`
	Version  string `json:"version,omitempty"`
}

// request is a message for the kernel's shell channel.
func request(session, kind string, content any) (message, error) {
	data, err := json.Marshal(content)
	return message{
		Channel: "shell", Metadata: json.RawMessage("{}"), Content: data, Buffers: []string{},
		Header: header{
			ID: rand.Text(), Type: kind, Username: "kgpu", Session: session, Version: "5.3",
			Date: time.Now().UTC().Format(time.RFC3339Nano),
		},
	}, err
}

// content is what kgpu reads of the contents of all kinds of messages.
type content struct {
	State  string         `json:"execution_state"` // status
	Status string         `json:"status"`          // execute_reply
	Text   any            `json:"text"`            // stream
	Data   map[string]any `json:"data"`            // execute_result, display_data
	Name   string         `json:"ename"`           // error, execute_reply
	Value  string         `json:"evalue"`
}

// content is empty for kinds of messages that kgpu does not need.
func (m *message) content() (c content, err error) {
	switch m.Header.Type {
	case "status", "stream", "execute_result", "display_data", "error", "execute_reply":
		err = json.Unmarshal(m.Content, &c)
	}
	return c, err
}

// text is what a message adds to the output.
func (c content) text(kind string) string {
	switch kind {
	case "stream":
		s, _ := c.Text.(string)
		return s
	case "execute_result", "display_data":
		if s, ok := c.Data["text/plain"].(string); ok {
			return s + "\n"
		}
	}
	return ""
}
