package cases

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"signalbox.dev/infra/test/kit"
)

// dump is all that is stored, in an order of its own.
func (env *Environment) dump() string {
	var lines []string
	for name, table := range env.tables() {
		for _, row := range env.Rows(table).All(env.TB()) {
			text, err := json.Marshal(row)
			kit.Must(env.TB(), err)
			lines = append(lines, name+" "+string(text))
		}
	}
	return comparable(append(lines, fmt.Sprintf("%+v", env.File("file_1"))))
}

// changing is what differs between two runs: ids, hashes, times, and bytes that KMS or a random
// number made.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}|arn:[^"]*|\d{4}-\d\d-\d\dT[^"]*|\d{9,}|[A-Z2-7]{26}|"nonce":[^}]*|[\w+/]{40,}=*`)

func comparable(lines []string) string {
	for i := range lines {
		lines[i] = changing.ReplaceAllString(lines[i], "#")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
