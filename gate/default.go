package gate

import _ "embed"

// DefaultName is the file name of the policy that reeve init writes.
const DefaultName = "default.cedar"

//go:embed default.cedar
var defaultText []byte

// DefaultSource is the shipped policy.
func DefaultSource() Source { return Source{Name: DefaultName, Text: defaultText} }
