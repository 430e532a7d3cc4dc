// Package src carries the sources of the small programs that prepare compiles for the lab's hosts and images.
package src

import "embed"

// FS holds one folder per program.
//
//go:embed pause netbox runc flannelcni flanneld coredns nvml vectoradd
var FS embed.FS
