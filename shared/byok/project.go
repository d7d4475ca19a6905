package byok

import (
	"strconv"
	"strings"
)

// project asks for these attributes, "." between the parts of a path. Some of
// their names are words of DynamoDB's own, so all of them get another.
func project(paths ...string) (expression string, names map[string]string) {
	names = map[string]string{}
	aliases := map[string]string{}
	var wanted []string
	for _, path := range paths {
		var parts []string
		for part := range strings.SplitSeq(path, ".") {
			if aliases[part] == "" {
				aliases[part] = "#a" + strconv.Itoa(len(aliases))
				names[aliases[part]] = part
			}
			parts = append(parts, aliases[part])
		}
		wanted = append(wanted, strings.Join(parts, "."))
	}
	return strings.Join(wanted, ", "), names
}
