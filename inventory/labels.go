package inventory

import (
	"fmt"
	"regexp"
	"strings"
)

// Labels and taints as kubernetes.io/docs/concepts/overview/working-with-objects/labels has them: an optional DNS prefix and
// a slash, then a name; name and value of at most 63 characters.
var qualifiedName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

func checkLabelKey(key string) error {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	}
	if found && (len(prefix) > maxSubdomain || !subdomainExpression.MatchString(prefix)) {
		return fmt.Errorf("%q: %q in front of the slash is not a DNS name in lower case", key, prefix)
	}
	if len(name) > maxLabel || !qualifiedName.MatchString(name) {
		return fmt.Errorf("%q is not a label's key: at most %d letters, digits and -_. with a letter or digit at both ends", key, maxLabel)
	}
	return nil
}

func labelValue(s string) (string, error) {
	if s != "" && (len(s) > maxLabel || !qualifiedName.MatchString(s)) {
		return "", fmt.Errorf("%q is not a label's value: at most %d letters, digits and -_. with a letter or digit at both ends", s, maxLabel)
	}
	return s, nil
}

// taint reads key=value:Effect or key:Effect.
func taint(s string) (Taint, error) {
	rest, effect, ok := cutLast(s, ":")
	if !ok {
		return Taint{}, fmt.Errorf("%q is not key=value:Effect or key:Effect", s)
	}
	effect, err := oneOf("NoSchedule", "PreferNoSchedule", "NoExecute")(effect)
	if err != nil {
		return Taint{}, err
	}
	key, value, _ := strings.Cut(rest, "=")
	if err := checkLabelKey(key); err != nil {
		return Taint{}, err
	}
	if value, err = labelValue(value); err != nil {
		return Taint{}, err
	}
	return Taint{key, value, effect}, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
