package access

import (
	"context"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

// Users are the users that kgpu made.
func Users(ctx context.Context, o session.Options) ([]report.User, error) {
	c, err := enter(ctx, o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Users(ctx)
}

// Users asks for them over connections that there are.
func (c *Cluster) Users(ctx context.Context) ([]report.User, error) {
	answer, err := c.ask(ctx, "users", "")
	if err != nil {
		return nil, err
	}
	var out []report.User
	for line := range strings.Lines(answer) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 {
			return nil, c.misunderstood("users")
		}
		out = append(out, report.User{Name: f[0], Namespace: f[1], Role: f[2], Until: certificateEnd(f[3])})
	}
	return out, nil
}

// certificateEnd reads what openssl prints; zero: it is not known.
func certificateEnd(text string) time.Time {
	end, _ := time.Parse("Jan _2 15:04:05 2006 MST", text)
	return end
}
