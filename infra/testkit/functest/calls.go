package functest

import (
	"testing"

	"signalbox.dev/infra/testkit/faults"
)

// checkCalls checks what every call of a function owes: reads are strongly
// consistent, and writes conditional, so that the store settles races.
func checkCalls(t testing.TB, calls []faults.Call) {
	t.Helper()
	for _, c := range calls {
		if !isConsistentOrConditional(c) {
			t.Errorf("%s: an eventually consistent read, or an unconditional write: %v", stepOf(c), c.Input)
		}
	}
}

func isConsistentOrConditional(c faults.Call) bool {
	conditional := func(write map[string]any) bool { return write["ConditionExpression"] != nil }
	switch c.Operation {
	case "GetItem":
		return c.Input["ConsistentRead"] == true
	case "BatchGetItem":
		tables, _ := c.Input["RequestItems"].(map[string]any)
		for _, asked := range tables {
			if table, _ := asked.(map[string]any); table["ConsistentRead"] != true {
				return false
			}
		}
		return len(tables) > 0
	case "PutItem", "UpdateItem":
		return conditional(c.Input)
	case "TransactWriteItems":
		items, _ := c.Input["TransactItems"].([]any)
		for _, item := range items {
			actions, _ := item.(map[string]any)
			for _, action := range actions {
				if write, _ := action.(map[string]any); !conditional(write) {
					return false
				}
			}
		}
		return len(items) > 0
	case "DeleteObject":
		return c.Header.Get("If-Match") == "*"
	case "DeleteObjects", "ListObjectVersions", "GenerateDataKey": // by version id; reads are consistent; no effect
		return true
	default:
		return false
	}
}
