package support

import (
	"bytes"
	"encoding/json"
	"regexp"
)

var (
	secretKind = regexp.MustCompile(`kind\\*"?[ \t]*:[ \t]*\\*"?Secret(?:List)?\b`)
	dataKey    = regexp.MustCompile(`^([ \t-]*)(?:data|stringData)[ \t]*:[ \t]*`)
	keyOfData  = regexp.MustCompile(`^[ \t]*[\w."'/-]+[ \t]*:`)
	dataObject = regexp.MustCompile(`"(?:data|stringData)"[ \t\r\n]*:[ \t\r\n]*\{`)
	dataInText = regexp.MustCompile(`(\\+"(?:data|stringData)\\+":\{)(.*?)(\},\\+"(?:kind|metadata|stringData|type|immutable)\\+"|\n|$)`)
)

// withoutSecretData takes the values out of the data of Kubernetes' Secrets, in YAML, in JSON, and in JSON within a string, as kubectl
// apply keeps it. Their keys stay where there is no doubt which they are. What else is in a document with a Secret may go with it.
func withoutSecretData(text []byte) []byte {
	if !secretKind.Match(text) {
		return text
	}
	text = dataInText.ReplaceAll(text, []byte("${1}"+scrubbed+"${3}"))
	return withoutYAMLData(withoutJSONData(text))
}

// withoutJSONData does it for objects. Of one that is cut off, all the rest goes.
func withoutJSONData(text []byte) []byte {
	var out bytes.Buffer
	for {
		at := dataObject.FindIndex(text)
		if at == nil {
			out.Write(text)
			return out.Bytes()
		}
		out.Write(text[:at[1]-1])
		text = text[at[1]-1:]
		var data map[string]any
		decoder := json.NewDecoder(bytes.NewReader(text))
		if decoder.Decode(&data) != nil {
			out.WriteString("{" + scrubbed + "\n")
			return out.Bytes()
		}
		for key := range data {
			data[key] = scrubbed
		}
		clean, _ := json.Marshal(data) // of strings: it cannot fail
		out.Write(clean)
		text = text[decoder.InputOffset():]
	}
}

// withoutYAMLData does it for lines: those below data that are further in. What is further in than the first of them has no key.
func withoutYAMLData(text []byte) []byte {
	var out bytes.Buffer
	inside, keys := -1, -1 // how far in data stands, and its keys; -1: there is none
	for line := range bytes.Lines(text) {
		bare := bytes.TrimRight(line, "\r\n")
		in := len(bare) - len(bytes.TrimLeft(bare, " \t"))
		if inside >= 0 && (in > inside || in == len(bare)) {
			if keys < 0 && in < len(bare) {
				keys = in
			}
			if in == keys {
				out.Write(keyOfData.Find(bare))
			}
			if in < len(bare) {
				out.WriteString(" " + scrubbed)
			}
			out.Write(line[len(bare):])
			continue
		}
		inside = -1
		if key := dataKey.FindSubmatch(bare); key != nil {
			inside, keys = len(key[1]), -1
			if len(key[0]) < len(bare) { // its values are in this line
				out.Write(key[0])
				out.WriteString(scrubbed)
				out.Write(line[len(bare):])
				continue
			}
		}
		out.Write(line)
	}
	return out.Bytes()
}
