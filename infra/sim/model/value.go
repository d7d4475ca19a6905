package model

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item of a table, by attribute. Its values are never changed in place.
type Item = map[string]types.AttributeValue

// wire is an item, or the values of an expression, in DynamoDB's JSON.
type wire Item

// MarshalJSON implements json.Marshaler.
func (i wire) MarshalJSON() ([]byte, error) { return attributevalue.MarshalMapJSON(i) }

// UnmarshalJSON implements json.Unmarshaler. It refuses the values that the model lacks.
func (i *wire) UnmarshalJSON(data []byte) error {
	item, err := attributevalue.UnmarshalMapJSON(data)
	if *i = item; err != nil {
		return err
	}
	return checkAll(maps.Values(item))
}

func checkAll(values iter.Seq[types.AttributeValue]) error {
	for v := range values {
		if err := check(v); err != nil {
			return err
		}
	}
	return nil
}

// check refuses sets, and numbers that are not integers in Go's notation.
func check(v types.AttributeValue) error {
	switch v := v.(type) {
	case *types.AttributeValueMemberS, *types.AttributeValueMemberB, *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return nil
	case *types.AttributeValueMemberN:
		if strconv.FormatInt(integer(v), 10) == v.Value {
			return nil
		}
		return notModelled("the number %s", v.Value)
	case *types.AttributeValueMemberM:
		return checkAll(maps.Values(v.Value))
	case *types.AttributeValueMemberL:
		return checkAll(slices.Values(v.Value))
	}
	return notModelled("values of type %T", v)
}

// integer returns the value of a number that is an integer.
func integer(v *types.AttributeValueMemberN) int64 {
	n, _ := strconv.ParseInt(v.Value, 10, 64) // check refuses others
	return n
}

// textOf returns a text, "" for any other value.
func textOf(v types.AttributeValue) string {
	if text, ok := v.(*types.AttributeValueMemberS); ok {
		return text.Value
	}
	return ""
}

// ordered makes a comparator of the order of two texts or two numbers. It is false for
// other values.
func ordered(holds func(order int) bool) func(a, b types.AttributeValue) bool {
	return func(a, b types.AttributeValue) bool {
		switch a := a.(type) {
		case *types.AttributeValueMemberS:
			b, same := b.(*types.AttributeValueMemberS)
			return same && holds(strings.Compare(a.Value, b.Value))
		case *types.AttributeValueMemberN:
			b, same := b.(*types.AttributeValueMemberN)
			return same && holds(cmp.Compare(integer(a), integer(b)))
		}
		return false
	}
}

// equal reports whether both values exist and are the same.
func equal(a, b types.AttributeValue) bool { return a != nil && reflect.DeepEqual(a, b) }
