package testkit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Damaged is a row that differs from a sound one in one attribute.
type Damaged struct {
	Attribute string
	Value     types.AttributeValue // nil where it is missing
	Row       Row
}

func (d Damaged) String() string { return fmt.Sprintf("%s %T", d.Attribute, d.Value) }

// Damage returns the row without each attribute, and with a value of every type in
// place of each attribute. Its primary key stays.
func Damage(row Row) []Damaged {
	values := []types.AttributeValue{
		nil,
		Text("x"),
		Number("99"),
		&types.AttributeValueMemberB{Value: []byte("x")},
		&types.AttributeValueMemberBOOL{Value: true},
		&types.AttributeValueMemberNULL{Value: true},
		&types.AttributeValueMemberSS{Value: []string{"x"}},
		&types.AttributeValueMemberNS{Value: []string{"1"}},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{}},
		&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}},
	}
	var all []Damaged
	for _, name := range slices.Sorted(maps.Keys(row)) {
		if name == "pk" || name == "sk" {
			continue
		}
		for _, value := range values {
			damaged := maps.Clone(row)
			if damaged[name] = value; value == nil {
				delete(damaged, name)
			}
			all = append(all, Damaged{name, value, damaged})
		}
	}
	return all
}
