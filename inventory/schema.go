package inventory

import _ "embed" // the schema

//go:embed schema.json
var schema []byte

// Schema returns the JSON schema (draft 2020-12) of the inventory, for editors. Decode checks more than it can say.
func Schema() []byte { return append([]byte(nil), schema...) }
