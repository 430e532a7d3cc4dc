// Package support makes the bundle that goes to somebody who helps: what hosts printed, without secrets, in one archive.
package support

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// scrubbed stands where a secret was.
const scrubbed = "[scrubbed]"

// Scrubber takes secrets out of text: those that it is told, and what looks like one. It would rather take too much.
type Scrubber struct {
	long  *strings.Replacer // known secrets, wherever they stand
	short *regexp.Regexp    // known secrets that other words may contain: as words of their own; nil: none
	may   func([]byte) bool // cheap: whether there can be a short one
}

// shortSecret is the length up to which a secret may be a part of words that are none.
const shortSecret = 5

// NewScrubber makes a Scrubber that knows these secrets by their values.
func NewScrubber(secrets ...string) *Scrubber {
	var long, short, words []string
	for _, s := range secrets {
		for _, line := range strings.Split(s, "\n") {
			line = strings.TrimSpace(line)
			switch {
			case line == "":
			case len(line) <= shortSecret:
				short, words = append(short, regexp.QuoteMeta(line)), append(words, line)
			default:
				long = append(long, line, url.QueryEscape(line), url.PathEscape(line), inJSON(line))
			}
		}
	}
	slices.SortFunc(long, func(a, b string) int { return len(b) - len(a) }) // of two that begin alike, all of the longer one
	var pairs []string
	for _, s := range slices.Compact(long) {
		pairs = append(pairs, s, scrubbed)
	}
	scrubber := &Scrubber{long: strings.NewReplacer(pairs...), may: has(words...)}
	if len(short) > 0 {
		scrubber.short = regexp.MustCompile(`(^|[^0-9A-Za-z_])(?:` + strings.Join(short, "|") + `)($|[^0-9A-Za-z_])`)
	}
	return scrubber
}

// inJSON is text as it stands in a JSON string, such as kgpu writes its facts and events.
func inJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text // never: strings can be encoded
	}
	return string(quoted[1 : len(quoted)-1])
}

// rule takes out what looks like a secret. What is kept stands in $1, $2 …
type rule struct {
	may   func(lower []byte) bool // cheap: whether there can be one in a text, which is in lower case here
	looks *regexp.Regexp
	kept  string
}

// has is for rules that need one of these words.
func has(words ...string) func([]byte) bool {
	return func(lower []byte) bool {
		return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(lower, []byte(w)) })
	}
}

// runs is for rules that need so many characters of a kind in a row.
func runs(is func(byte) bool, least int) func([]byte) bool {
	return func(lower []byte) bool {
		run := 0
		for _, c := range lower {
			if run++; !is(c) {
				run = 0
			} else if run == least {
				return true
			}
		}
		return false
	}
}

func isHex(c byte) bool          { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
func isLowerOrDigit(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' }

// keys are rules for the whole text: they go over lines. Keys may be cut off at one end, and have a journal's words before
// each of their lines.
var keys = []rule{
	{has(keyMark), regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----.*?-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`), scrubbed},
	{has(keyMark), regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?:[^-]|-[^-])*`), scrubbed},
	{has(keyMark), regexp.MustCompile(`[A-Za-z0-9+/=\s\\]*-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`), scrubbed},
}

const keyMark = "private key"

// keyLine is a line of a key. Where a part of a key was found, lines like it go, too.
var keyLine = regexp.MustCompile(`[A-Za-z0-9+/]{60,}={0,2}`)

// keyNames are words before a colon or an equals sign, perhaps the ends of longer ones, behind which a secret stands.
const keyNames = `token|passwd|password|passphrase|credentials?|secret|api[-_]?key|access[-_]?key|secret[-_]?key|certificate[-_]?key|private[-_]?key|` +
	`client-key-data|client-certificate-data|certificate-authority-data|tls\.key|auth`

var named = has("token", "pass", "secret", "key", "-data", "auth", "credential")

// authorization is the header of that name, up to its value.
const authorization = `\bauthorization\\?["']?[ \t]*[:=][ \t]*\\?["']?`

// rules are for lines.
var rules = []rule{
	// What a step gives to another, join tokens among it: events of a run have it in base64.
	{has("o\t"), regexp.MustCompile(`^(O\t[^\t\n]*\t[^\t\n]*\t)[^\n]*`), "${1}" + scrubbed},
	{has("bearer"), regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + scrubbed},
	// A header's scheme stays, and of one that nobody knows nothing does.
	{has("authorization"), regexp.MustCompile(`(?i)(` + authorization + `(?:basic|token|apikey|bearer)[ \t]+)[^\s"'\\]+`), "${1}" + scrubbed},
	{has("authorization"), regexp.MustCompile(`(?i)(` + authorization + `(?:digest|negotiate|ntlm|aws4-hmac-sha256)[ \t]+)[^'\\\n]+`), "${1}" + scrubbed},
	{has("authorization"), regexp.MustCompile(`(?i)(` + authorization + `)[^\s"'\\]{20,}`), "${1}" + scrubbed},
	{has("cookie"), regexp.MustCompile(`(?i)\b((?:set-)?cookie\\?["']?[ \t]*[:=][ \t]*\\?["']?)[^"'\\\n]+`), "${1}" + scrubbed},
	{has("curl"), regexp.MustCompile(`((?:[ \t]-[A-Za-z]*u|--(?:proxy-)?user)[ \t=]*["']?[^\s:"']+:)[^\s"']+`), "${1}" + scrubbed},
	{has("login"), regexp.MustCompile(`(\blogin\b[^\n]*[ \t]-p[ \t=]*["']?)[^\s"']+`), "${1}" + scrubbed},
	// Tokens that tell by their beginning whose they are, which stays: Hugging Face, GitHub, GitLab, NVIDIA, Slack, OpenAI, AWS.
	{has("hf_", "gh", "gl", "nvapi-", "xox", "sk-"), regexp.MustCompile(`\b(hf_|gh[opusr]_|github_pat_|nvapi-|xox[a-z]-|sk-|` +
		`gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas)-)[A-Za-z0-9_-]{16,}`), "${1}" + scrubbed},
	{has("akia", "asia"), regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`), "${1}" + scrubbed},
	{has("eyj"), regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?`), scrubbed},
	// The user's name in a URL stays; what stands alone before the @ may be a token.
	{has("://"), regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/:@"'<>]*):[^\s/"'<>]*@`), "${1}${2}:" + scrubbed + "@"},
	{has("://"), regexp.MustCompile(`(?i)\b(https?://)[^\s/:@"'<>]+@`), "${1}" + scrubbed + "@"},
	// kubeadm's tokens keep their IDs, which are no secrets and tell tokens apart. Names of events look alike.
	{runs(isLowerOrDigit, 16), regexp.MustCompile(`\b([a-z0-9]{6}\.)[a-z0-9]{16}\b`), "${1}" + scrubbed},
	{named, regexp.MustCompile(`(?i)((?:^|[^A-Za-z])-{1,2}(?:` + keyNames + `)[ \t]+)[^\s"']+`), "${1}" + scrubbed},
	{named, regexp.MustCompile(`(?i)((?:` + keyNames + `)\\?["']?[ \t]*[:=][ \t]*\\?")(?:[^"\\\n]|\\[^"\n])+`), "${1}" + scrubbed},
	{named, regexp.MustCompile(`(?i)((?:` + keyNames + `)["']?[ \t]*[:=][ \t]*')[^'\n]+`), "${1}" + scrubbed},
	{named, regexp.MustCompile(`(?i)((?:` + keyNames + `)["']?[ \t]*[:=][ \t]*)[^\s"'\\,;&}\]][^\s"'\\,;&}]*`), "${1}" + scrubbed},
	// $PWD is a folder.
	{has("pwd", "pass"), regexp.MustCompile(`(?i)((?:^|[^A-Za-z])(?:pwd|pass)\\?["']?[ \t]*[:=][ \t]*\\?["']?)[^\s"'\\,;&}/][^\s"'\\]*`), "${1}" + scrubbed},
	// People choose passwords: they may have blanks, and in a file of settings all of the line is one.
	{has("pass"), regexp.MustCompile(`(?i)^([ \t]*(?:- )?[\w.-]*(?:passwd|password|passphrase)[ \t]*:[ \t]+)[^\s"'][^\n]*`), "${1}" + scrubbed},
	{has("pass"), regexp.MustCompile(`(?i)((?:passwd|password|passphrase)[ \t]*[:=][ \t]*)[^\s"'\\][^\s"'\\]*`), "${1}" + scrubbed},
	// kgpu's tokens for the notebook: 24 random bytes. Nothing else has this length.
	{runs(isHex, 48), regexp.MustCompile(`\b[0-9a-f]{48}\b`), scrubbed},
}

func apply(rules []rule, text []byte) []byte {
	lower := bytes.ToLower(text)
	for _, r := range rules {
		if r.may(lower) {
			text = r.looks.ReplaceAll(text, []byte(r.kept))
		}
	}
	return text
}

// encoded is what may be text in base64.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/]{20,}={0,2}`)

func isBase64(c byte) bool { return isLowerOrDigit(c) || c == '+' || c == '/' }

// depth is how often text may be encoded in encoded text: a Secret in a manifest in the facts.
const depth = 3

// Scrub returns text without secrets, with nothing in it that a terminal would obey, as valid UTF-8.
func (s *Scrubber) Scrub(text []byte) []byte {
	return plain(s.scrub(text, depth))
}

func (s *Scrubber) scrub(text []byte, depth int) []byte {
	text = []byte(s.long.Replace(string(text)))
	if clean := apply(keys, text); !bytes.Equal(clean, text) {
		text = keyLine.ReplaceAll(clean, []byte(scrubbed))
	}
	text = withoutSecretData(text)
	var out bytes.Buffer
	out.Grow(len(text))
	for line := range bytes.Lines(text) {
		out.Write(s.line(line, depth))
	}
	return out.Bytes()
}

func (s *Scrubber) line(line []byte, depth int) []byte {
	if s.short != nil && s.may(line) {
		for range 2 { // what ends one match is not there to begin the next one
			line = s.short.ReplaceAll(line, []byte("${1}"+scrubbed+"${2}"))
		}
	}
	if depth > 0 && hasBase64(bytes.ToLower(line)) {
		line = encoded.ReplaceAllFunc(line, func(found []byte) []byte { return s.decoded(found, depth-1) })
	}
	return apply(rules, line)
}

var hasBase64 = runs(isBase64, 20)

// decoded scrubs text that is encoded in base64; what is no text stays.
func (s *Scrubber) decoded(found []byte, depth int) []byte {
	bare := bytes.TrimRight(found, "=")
	text, err := base64.RawStdEncoding.DecodeString(string(bare))
	if err != nil || !utf8.Valid(text) {
		return found
	}
	clean := s.scrub(text, depth)
	if bytes.Equal(clean, text) {
		return found
	}
	return []byte(base64.StdEncoding.EncodeToString(clean))
}

// plain makes control characters, and what is not UTF-8, visible.
func plain(text []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(text))
	for _, r := range strings.ToValidUTF8(string(text), "\uFFFD") {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r < ' ':
			out.WriteByte('^')
			out.WriteRune(r + '@')
		case r == 0x7f || r >= 0x80 && r < 0xa0:
			out.WriteRune(utf8.RuneError)
		default:
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}
