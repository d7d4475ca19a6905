package cases

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// dump is all that is stored, without what differs between two runs: ids, hashes, times and
// bytes that KMS or a random number made.
func (w *World) dump() string {
	var lines []string
	for name, table := range w.tables() {
		for _, row := range w.Rows(table).All(w.TB()) {
			lines = append(lines, name+" "+shown(&types.AttributeValueMemberM{Value: row}))
		}
	}
	slices.Sort(lines)
	o := w.Bucket().Look(w.TB(), "files/"+string(w.Tenant.Workspace)+"/file_1")
	return strings.Join(append(lines, fmt.Sprintf("file %+v", o)), "\n")
}

var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{64}|[0-9]{9,}|[A-Z2-7]{26}|\d{4}-\d\d-\d\dT[^"]*`)

func shown(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return changing.ReplaceAllString(v.Value, "#")
	case *types.AttributeValueMemberN:
		return changing.ReplaceAllString(v.Value, "#")
	case *types.AttributeValueMemberB:
		return fmt.Sprint(len(v.Value), " bytes")
	case *types.AttributeValueMemberM:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			if name != "key_arn" && name != "wrapped_key" {
				all = append(all, changing.ReplaceAllString(name, "#")+":"+shown(v.Value[name]))
			}
		}
		return "{" + strings.Join(all, " ") + "}"
	case *types.AttributeValueMemberL:
		var all []string
		for _, element := range v.Value {
			all = append(all, shown(element))
		}
		return "[" + strings.Join(all, " ") + "]"
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprint(v.Value)
	default:
		return fmt.Sprintf("%T", v)
	}
}
