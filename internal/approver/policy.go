package approver

import _ "embed"

// The judge's instructions (approvals.md 12) and the schema of its reply (13).
var (
	//go:embed policy.md
	policyText string
	//go:embed schema.json
	schemaText string
)

// instructions are those of every judge's bot: the policy, the schema at its end.
func instructions() string { return policyText + "\n" + schemaText }
