package openapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Properties are the members of the named schema.
func (s *Spec) Properties(schema string) map[string]*openapi3.Schema {
	all := map[string]*openapi3.Schema{}
	for name, property := range s.document.Components.Schemas[schema].Value.Properties {
		all[name] = property.Value
	}
	return all
}

// Values are values, as JSON, that try a schema: some of each type, those at its bounds and
// those just past them. Some are far too large: they find a bound that only the code has. A
// text or an element with a pattern needs a sample.
func Values(schema *openapi3.Schema, sample string) []string {
	all := []string{"null", "true", "false", "7", "7.0", "0.5", "[]", "[1]", "{}", `""`, `"x"`, `"true"`, `["x"]`}
	if schema.Type.Includes("string") {
		all = append(all, texts(schema, sample)...)
	}
	if schema.Type.Includes("integer") || schema.Type.Includes("number") {
		all = append(all, "-1000000000", "1000000000")
		for _, bound := range []*float64{schema.Min, schema.Max, schema.ExclusiveMin.Value, schema.ExclusiveMax.Value} {
			if bound != nil {
				all = append(all, number(*bound-1), number(*bound), number(*bound+1))
			}
		}
	}
	if schema.Type.Includes("array") {
		all = append(all, lists(schema, sample)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// body bounds a value, in bytes. The service refuses a body of more than 65,536.
const body = 60_000

func texts(schema *openapi3.Schema, sample string) []string {
	letter, all := "😀", []string{text("x", 40_000)}
	if atMost(schema.MaxLength) > body/uint64(len(letter)) {
		letter = "k"
	}
	for _, length := range around(schema.MinLength, schema.MaxLength) {
		all = append(all, text(letter, length))
	}
	if len(schema.Enum) > 0 {
		sample, _ = schema.Enum[0].(string)
	}
	if sample != "" {
		for _, variant := range []string{sample, strings.ToUpper(sample), sample + " ", sample[1:], "{" + sample + "}", strings.ReplaceAll(sample, "-", "")} {
			all = append(all, text(variant, 1))
		}
	}
	return all
}

func lists(schema *openapi3.Schema, sample string) (all []string) {
	elements := Values(schema.Items.Value, sample)
	allowed := slices.IndexFunc(elements, func(element string) bool {
		return checkJSON(schema.Items, []byte(element)) == nil
	})
	if allowed < 0 {
		return nil
	}
	good := elements[allowed]
	for _, length := range append(around(schema.MinItems, schema.MaxItems), 300) {
		if length*uint64(len(good)+1) < body {
			all = append(all, "["+strings.Join(slices.Repeat([]string{good}, int(length)), ",")+"]") //nolint:gosec // bounded above
		}
	}
	for _, element := range elements {
		all = append(all, "["+good+","+element+"]")
	}
	return all
}

// around are the lengths at both bounds and just past them.
func around(least uint64, most *uint64) []uint64 {
	lengths := []uint64{max(least, 1) - 1, least}
	if most != nil {
		lengths = append(lengths, *most, *most+1)
	}
	return lengths
}

func atMost(length *uint64) uint64 {
	if length == nil {
		return 0
	}
	return *length
}

func text(letters string, times uint64) string {
	return strconv.Quote(strings.Repeat(letters, int(times))) //nolint:gosec // a length in a description
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
