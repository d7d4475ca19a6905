package byok

const (
	unlabelled   = "..."
	labelMinimum = 16 // characters of the key
	labelHead    = 3
	labelTail    = 4
)

// Label is the mask that stands for a provider key: its first 3 characters,
// "..." and its last 4 ("sk-...AbCd") for a key of 16 or more characters, all of
// them U+0021 to U+007E, that does not begin with {, [ or ". For any other key,
// a JSON document or a short one, it is "...". It never shows more than 7
// characters of a key, nor as many as half of it.
func Label(key []byte) string {
	if len(key) < labelMinimum || key[0] == '{' || key[0] == '[' || key[0] == '"' {
		return unlabelled
	}
	for _, c := range key {
		if c < '!' || c > '~' {
			return unlabelled
		}
	}
	return string(key[:labelHead]) + unlabelled + string(key[len(key)-labelTail:])
}
