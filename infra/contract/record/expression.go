package record

import (
	"regexp"
	"strings"
)

// word is an attribute's path, a keyword, a function's name or a value's.
var word = regexp.MustCompile(`[:#]?\w[\w.#\[\]]*\s*\(?`)

// keywords are words of expressions that are no attributes.
const keywords = " SET REMOVE ADD DELETE AND OR NOT BETWEEN IN "

// attributesIn are the top-level attributes that an expression names: account for `SET #a.x
// = :x`, if names maps #a to account.
func attributesIn(expression string, names map[string]string) []string {
	var found []string
	for _, w := range word.FindAllString(expression, -1) {
		path := strings.TrimSpace(strings.TrimSuffix(w, "("))
		head, _, _ := strings.Cut(path, ".")
		head, _, _ = strings.Cut(head, "[")
		switch {
		case strings.HasPrefix(head, ":"), isNumber(head):
		case strings.HasPrefix(head, "#"):
			found = append(found, names[head])
		case strings.Contains(keywords, " "+strings.ToUpper(head)+" "):
		case strings.HasSuffix(w, "("): // a function
		default:
			found = append(found, head)
		}
	}
	return found
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }
