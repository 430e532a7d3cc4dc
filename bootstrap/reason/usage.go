package reason

import "fmt"

// UsageError is a command line that is wrong, or that names what is not there.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// Usagef is a UsageError with such a message.
func Usagef(format string, args ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, args...)}
}
