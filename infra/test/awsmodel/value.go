package awsmodel

import (
	"cmp"
	"encoding/base64"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Item is an item of a table, by attribute. Each value is an object with one member, as in
// DynamoDB's JSON: {"S": "a text"}. Values are never changed in place.
type Item = object

// special matches the sets and the numbers in a request's JSON.
var special = regexp.MustCompile(`"(?:[SNB]S":\[|N":"([^"]*))`)

// checkValues refuses sets, and numbers that are not integers in Go's notation.
func checkValues(body []byte) error {
	for _, found := range special.FindAllSubmatch(body, -1) {
		n, err := strconv.ParseInt(string(found[1]), 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != string(found[1]) {
			return notModelled("the value %s", found[0])
		}
	}
	return nil
}

// inside returns what the value holds, if it is of this kind.
func inside[V any](value any, kind string) (v V, ok bool) {
	o, _ := value.(object)
	v, ok = o[kind].(V)
	return v, ok
}

// textOf returns a text, "" for any other value.
func textOf(v any) string {
	text, _ := inside[string](v, "S")
	return text
}

// integer returns a number. ok is false for any other value.
func integer(v any) (n int64, ok bool) {
	digits, ok := inside[string](v, "N")
	n, _ = strconv.ParseInt(digits, 10, 64) // checkValues refuses others
	return n, ok
}

// ordered makes a comparator of the order of two texts or two numbers. It is false for
// other values.
func ordered(holds func(order int) bool) func(a, b any) bool {
	return func(a, b any) bool {
		if x, isText := inside[string](a, "S"); isText {
			y, same := inside[string](b, "S")
			return same && holds(strings.Compare(x, y))
		}
		x, isNumber := integer(a)
		y, same := integer(b)
		return isNumber && same && holds(cmp.Compare(x, y))
	}
}

// equal reports whether both values exist and are the same.
func equal(a, b any) bool { return a != nil && reflect.DeepEqual(a, b) }

// sizeOf returns the size of an item in bytes, as DynamoDB counts it (Developer Guide, item
// sizes and formats).
func sizeOf(i Item) (size int) {
	for name, value := range i {
		size += len(name) + sizeOfValue(value)
	}
	return size
}

func sizeOfValue(value any) int {
	o, _ := value.(object)
	for kind, inner := range o {
		switch v := inner.(type) {
		case string:
			switch kind {
			case "B":
				return base64.StdEncoding.DecodedLen(len(v)) - strings.Count(v, "=")
			case "N":
				return (len(strings.Trim(v, "-0"))+1)/2 + 1 + strings.Count(v, "-")
			}
			return len(v)
		case object: // a map
			return 3 + len(v) + sizeOf(v)
		case []any: // a list
			size := 3 + len(v)
			for _, element := range v {
				size += sizeOfValue(element)
			}
			return size
		}
	}
	return 1 // BOOL or NULL
}
