package faults

import (
	"slices"
	"strings"
)

// kindOf tells which kind of item a call to DynamoDB is about: its partition
// key up to the "#". The kinds of a transaction's items are joined by "+". It is
// "" where the input names no item. Two look-ups that run side by side are told
// apart by it, whichever is sent first.
func kindOf(input map[string]any) string {
	for _, member := range []string{"Key", "Item"} {
		if kind := kindAt(input[member]); kind != "" {
			return kind
		}
	}
	var kinds []string
	for _, table := range object(input["RequestItems"]) {
		for _, key := range list(object(table)["Keys"]) {
			kinds = append(kinds, kindAt(key))
		}
	}
	for _, write := range list(input["TransactItems"]) {
		for _, action := range object(write) {
			kinds = append(kinds, kindOf(object(action)))
		}
	}
	return strings.Join(slices.Compact(kinds), "+")
}

// kindAt reads the kind off a primary key, or an item that holds one.
func kindAt(item any) string {
	pk, _ := object(object(item)["pk"])["S"].(string)
	kind, _, found := strings.Cut(pk, "#")
	if !found {
		return ""
	}
	return kind + "#"
}

// object and list are what the value is, or empty.
func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
