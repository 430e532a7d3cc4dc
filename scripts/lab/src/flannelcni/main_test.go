package main

import (
	"encoding/json"
	"reflect"
	"testing"
)

const subnetEnv = `FLANNEL_NETWORK=10.244.0.0/16
FLANNEL_SUBNET=10.244.3.1/24
FLANNEL_MTU=1450
FLANNEL_IPMASQ=true
`

func TestDelegateIsABridgeInTheSubnet(t *testing.T) {
	input := `{"cniVersion":"0.3.1","name":"cbr0","type":"flannel","delegate":{"hairpinMode":true,"isDefaultGateway":true}}`
	text, err := delegate([]byte(input), []byte(subnetEnv))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"cniVersion": "0.3.1", "name": "cbr0", "type": "bridge", "mtu": 1450.0, "ipMasq": false, "isGateway": true,
		"hairpinMode": true, "isDefaultGateway": true,
		"ipam": map[string]any{"type": "host-local", "subnet": "10.244.3.0/24", "routes": []any{map[string]any{"dst": "10.244.0.0/16"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("delegate\n%s\nwant\n%v", text, want)
	}
}

func TestHalfWrittenSubnetFileIsRefused(t *testing.T) {
	if conf, err := delegate([]byte(`{"name":"cbr0"}`), []byte("FLANNEL_NETWORK=10.244.0.0/16\n")); err == nil {
		t.Errorf("no error, but %s", conf)
	}
}
