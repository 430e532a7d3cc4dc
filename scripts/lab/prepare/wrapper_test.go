package prepare

import (
	"testing"

	"golang.org/x/mod/modfile"
)

func TestWrapperFollowsTheModuleButNotItsFolders(t *testing.T) {
	const theirs = `module k8s.io/kubernetes

go 1.26.0

require (
	example.com/lib v1.2.3
	example.com/old v1.0.0
	k8s.io/api v0.0.0
	k8s.io/kubelet v0.0.0
)

replace (
	example.com/dev => ../dev
	example.com/old => example.com/new v1.1.0
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kubelet => k8s.io/kubelet v0.29.15
)
`
	const want = `module lab.invalid/program

go 1.26.0

require (
	k8s.io/kubernetes v1.36.3
	example.com/lib v1.2.3
	example.com/old v1.0.0
	k8s.io/kubelet v0.0.0
)

replace example.com/old => example.com/new v1.1.0

replace k8s.io/kubelet => k8s.io/kubelet v0.29.15

replace k8s.io/api => k8s.io/api v0.36.3
`
	file, err := modfile.Parse("go.mod", []byte(theirs), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wrap(file, "1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
