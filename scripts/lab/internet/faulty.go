package internet

import (
	"net/http"
	"path"
	"strconv"
	"time"
)

// faulty does to requests what the lab's faults say.
func faulty(faults Faults, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The answer to HEAD has no bytes that could be others.
		// apt asks for x/./y of a repository without suites.
		fault, err := faults.take(hostOf(r), path.Clean(r.URL.Path), func(k Kind) bool {
			return r.Method != http.MethodHead || k == Status || k == Hang
		})
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case fault == nil:
			next.ServeHTTP(w, r)
		case fault.Kind == Status:
			if fault.RetryAfter > 0 {
				w.Header().Set("Retry-After", strconv.Itoa(int(fault.RetryAfter/time.Second)))
			}
			http.Error(w, "a fault of the lab", fault.Code)
		case fault.Kind == Hang:
			<-r.Context().Done()
			// Whoever ends TLS in order still listens for a moment: it must not get the empty 200 of a handler that returns.
			panic(http.ErrAbortHandler)
		default:
			whole := r.Clone(r.Context()) // a client that has it, or a part of it, gets all of it anew
			for _, name := range []string{"Range", "If-Range", "If-Modified-Since", "If-None-Match"} {
				whole.Header.Del(name)
			}
			next.ServeHTTP(&spoiler{ResponseWriter: w, kind: fault.Kind}, whole)
		}
	})
}

// spoiler truncates an answer or flips a bit of it. Both need to know how long it is.
type spoiler struct {
	http.ResponseWriter
	kind    Kind
	begun   bool
	at      int64 // the middle of the answer
	written int64
}

func (s *spoiler) WriteHeader(status int) {
	s.begun = true
	length, _ := strconv.ParseInt(s.Header().Get("Content-Length"), 10, 64)
	s.at = length / 2
	if s.kind == Truncate && length > 0 {
		s.Header().Set("Content-Length", strconv.FormatInt(s.at, 10))
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write takes all of p, whatever it does with it.
func (s *spoiler) Write(p []byte) (int, error) {
	if !s.begun {
		s.WriteHeader(http.StatusOK)
	}
	out, middle := p, s.at-s.written
	s.written += int64(len(p))
	switch {
	case s.kind == Truncate && middle < int64(len(p)):
		out = p[:max(middle, 0)]
	case s.kind == Tamper && middle >= 0 && middle < int64(len(p)):
		out = append([]byte(nil), p...)
		out[middle] ^= 1
	}
	if len(out) == 0 {
		return len(p), nil
	}
	if n, err := s.ResponseWriter.Write(out); err != nil {
		return n, err
	}
	return len(p), nil
}
