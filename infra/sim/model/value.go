package model

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item of a table, by attribute. Its values are never changed in place.
type Item = map[string]types.AttributeValue

// wire is an item in DynamoDB's JSON.
type wire Item

// MarshalJSON implements json.Marshaler.
func (i wire) MarshalJSON() ([]byte, error) { return attributevalue.MarshalMapJSON(i) }

// UnmarshalJSON implements json.Unmarshaler.
func (i *wire) UnmarshalJSON(data []byte) error {
	var in map[string]attribute
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*i = make(wire, len(in))
	for name, v := range in {
		(*i)[name] = v.AttributeValue
	}
	return nil
}

// attribute is a value in DynamoDB's JSON.
type attribute struct{ types.AttributeValue }

// UnmarshalJSON implements json.Unmarshaler. It refuses the values that DynamoDB
// refuses, and normalizes numbers as DynamoDB does.
func (a *attribute) UnmarshalJSON(data []byte) (err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	if len(members) > 1 {
		return invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	for name, value := range members {
		a.AttributeValue, err = valueOf(name, value)
		return err
	}
	return invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}

// valueOf reads a value of the named type.
func valueOf(name string, data json.RawMessage) (types.AttributeValue, error) {
	switch name {
	case "S":
		return readAs(data, func(v string) (types.AttributeValue, error) { return &types.AttributeValueMemberS{Value: v}, nil })
	case "B":
		return readAs(data, func(v []byte) (types.AttributeValue, error) { return &types.AttributeValueMemberB{Value: v}, nil })
	case "BOOL":
		return readAs(data, func(v bool) (types.AttributeValue, error) { return &types.AttributeValueMemberBOOL{Value: v}, nil })
	case "M":
		return readAs(data, func(v wire) (types.AttributeValue, error) { return &types.AttributeValueMemberM{Value: v}, nil })
	case "N":
		return readAs(data, func(v string) (types.AttributeValue, error) {
			n, err := normalized(v)
			return &types.AttributeValueMemberN{Value: n}, err
		})
	case "NULL":
		return readAs(data, func(v bool) (types.AttributeValue, error) {
			if !v {
				return nil, invalid("One or more parameter values were invalid: Null attribute value types must have the value of true")
			}
			return &types.AttributeValueMemberNULL{Value: true}, nil
		})
	case "L":
		return readAs(data, func(v []attribute) (types.AttributeValue, error) {
			list := make([]types.AttributeValue, len(v))
			for i, element := range v {
				list[i] = element.AttributeValue
			}
			return &types.AttributeValueMemberL{Value: list}, nil
		})
	case "SS":
		return readAs(data, func(v []string) (types.AttributeValue, error) {
			if len(v) == 0 {
				return nil, invalid("One or more parameter values were invalid: An string set  may not be empty")
			}
			if sorted := slices.Sorted(slices.Values(v)); len(slices.Compact(sorted)) < len(v) {
				return nil, invalid("One or more parameter values were invalid: Input collection [%s] contains duplicates.", strings.Join(v, ", "))
			}
			return &types.AttributeValueMemberSS{Value: v}, nil
		})
	}
	return nil, notModelled("values of type %s", name)
}

func readAs[T any](data json.RawMessage, value func(T) (types.AttributeValue, error)) (types.AttributeValue, error) {
	var v *T
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	if v == nil {
		return nil, notModelled("null as a value")
	}
	return value(*v)
}

var numeral = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)

// The bounds of a number: 38 significant digits, and these magnitudes.
const digits = 38

var (
	largest, _  = new(big.Rat).SetString("9.9999999999999999999999999999999999999E+125")
	smallest, _ = new(big.Rat).SetString("1E-130")
)

// normalized returns the number as DynamoDB stores it.
func normalized(text string) (string, error) {
	if !numeral.MatchString(text) || len(text) > 200 {
		return "", invalid("The parameter cannot be converted to a numeric value: %s", text)
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return "", invalid("The parameter cannot be converted to a numeric value: %s", text)
	}
	return format(n)
}

// format writes a number without exponent, leading or trailing zeros.
func format(n *big.Rat) (string, error) {
	switch abs := new(big.Rat).Abs(n); {
	case abs.Cmp(largest) > 0:
		return "", invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case abs.Sign() > 0 && abs.Cmp(smallest) < 0:
		return "", invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	}
	text := n.FloatString(170) // exact: 38 digits of the smallest magnitude
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if significant := strings.Trim(strings.Replace(strings.TrimPrefix(text, "-"), ".", "", 1), "0"); len(significant) > digits {
		return "", invalid("Attempting to store more than 38 significant digits in a Number")
	}
	return text, nil
}

// rational returns the number that was stored, or checked, before.
func rational(v *types.AttributeValueMemberN) *big.Rat {
	n, _ := new(big.Rat).SetString(v.Value)
	return n
}

// typeOf returns DynamoDB's name of the type of a value.
func typeOf(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberM:
		return "M"
	case *types.AttributeValueMemberL:
		return "L"
	}
	return "SS"
}

// compare orders two values of the same type. It is false if they have no order:
// another type, or one without an order.
func compare(a, b types.AttributeValue) (order int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, same := b.(*types.AttributeValueMemberS); same {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, same := b.(*types.AttributeValueMemberN); same {
			return rational(a).Cmp(rational(b)), true
		}
	case *types.AttributeValueMemberB:
		if b, same := b.(*types.AttributeValueMemberB); same {
			return bytes.Compare(a.Value, b.Value), true
		}
	}
	return 0, false
}

// equal reports whether two values have one type and one value.
func equal(a, b types.AttributeValue) bool {
	if order, ok := compare(a, b); ok {
		return order == 0
	}
	switch a := a.(type) {
	case *types.AttributeValueMemberBOOL:
		b, same := b.(*types.AttributeValueMemberBOOL)
		return same && a.Value == b.Value
	case *types.AttributeValueMemberNULL:
		_, same := b.(*types.AttributeValueMemberNULL)
		return same
	case *types.AttributeValueMemberSS:
		b, same := b.(*types.AttributeValueMemberSS)
		return same && slices.Equal(slices.Sorted(slices.Values(a.Value)), slices.Sorted(slices.Values(b.Value)))
	case *types.AttributeValueMemberM:
		b, same := b.(*types.AttributeValueMemberM)
		return same && maps.EqualFunc(a.Value, b.Value, equal)
	case *types.AttributeValueMemberL:
		b, same := b.(*types.AttributeValueMemberL)
		return same && slices.EqualFunc(a.Value, b.Value, equal)
	}
	return false
}

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
		return (len(strings.Trim(v.Value, "-.0"))+1)/2 + 1
	case *types.AttributeValueMemberSS:
		return len(strings.Join(v.Value, ""))
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
