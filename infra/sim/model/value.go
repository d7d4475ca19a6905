package model

import (
	"fmt"
	"iter"
	"maps"
	"math/big"
	"reflect"
	"slices"
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

// UnmarshalJSON implements json.Unmarshaler. It refuses the values that DynamoDB
// refuses, and those that the model lacks.
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

// check refuses invalid values. It writes numbers as DynamoDB stores them.
func check(v types.AttributeValue) error {
	switch v := v.(type) {
	case nil:
		return invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	case *types.AttributeValueMemberS, *types.AttributeValueMemberB, *types.AttributeValueMemberBOOL:
		return nil
	case *types.AttributeValueMemberNULL:
		if !v.Value {
			return invalid("Null attribute value types must have the value of true")
		}
		return nil
	case *types.AttributeValueMemberN:
		n, ok := new(big.Int).SetString(v.Value, 10)
		if !ok || len(n.String()) > digits {
			return notModelled("the number %s", v.Value)
		}
		v.Value = n.String()
		return nil
	case *types.AttributeValueMemberM:
		return checkAll(maps.Values(v.Value))
	case *types.AttributeValueMemberL:
		return checkAll(slices.Values(v.Value))
	}
	return notModelled("values of type %s", typeOf(v))
}

// digits is how many significant digits a number has at most. The service has integers
// only.
const digits = 38

// integer returns a number that was checked before.
func integer(v *types.AttributeValueMemberN) *big.Int {
	n, _ := new(big.Int).SetString(v.Value, 10)
	return n
}

// typeOf returns DynamoDB's name of the type of a value.
func typeOf(v types.AttributeValue) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember")
}

// textOf returns a text, "" for any other value.
func textOf(v types.AttributeValue) string {
	if text, ok := v.(*types.AttributeValueMemberS); ok {
		return text.Value
	}
	return ""
}

// compare orders two texts or two numbers. It is false for other values.
func compare(a, b types.AttributeValue) (order int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, same := b.(*types.AttributeValueMemberS); same {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, same := b.(*types.AttributeValueMemberN); same {
			return integer(a).Cmp(integer(b)), true
		}
	}
	return 0, false
}

// equal reports whether both values exist and are the same. Checked numbers are equal if
// their texts are.
func equal(a, b types.AttributeValue) bool { return a != nil && reflect.DeepEqual(a, b) }

// sizeOf returns the size of an item in bytes, by DynamoDB's rules.
func sizeOf(i Item) (size int) {
	for name, v := range i {
		size += len(name) + sizeOfValue(v)
	}
	return size
}

func sizeOfValue(v types.AttributeValue) (size int) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return (len(strings.Trim(v.Value, "-0"))+1)/2 + 1
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	case *types.AttributeValueMemberL:
		size = 3 + len(v.Value)
		for _, element := range v.Value {
			size += sizeOfValue(element)
		}
		return size
	}
	return 1
}
