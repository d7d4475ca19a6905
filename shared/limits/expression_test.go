package limits_test

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// numbers is an item whose attributes are all numbers.
type numbers map[string]*big.Int

// paper is one item of DynamoDB's, updated as the expressions of a request say:
// the strings that are sent are what is evaluated. It knows as much of the
// language as the limiter speaks, and refuses everything else.
type paper struct {
	item  numbers // nil where there is none
	calls int
	// between runs before each call but the first, as another caller might.
	between func()
}

// UpdateItem is DynamoDB's.
func (p *paper) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	p.calls++
	if p.calls > 1 && p.between != nil {
		p.between()
	}
	values := numbers{}
	for name, value := range in.ExpressionAttributeValues {
		n, ok := new(big.Int).SetString(value.(*types.AttributeValueMemberN).Value, 10)
		if !ok {
			return nil, fmt.Errorf("%s is no number", name)
		}
		values[name] = n
	}
	met, err := p.meets(*in.ConditionExpression, values)
	if err != nil {
		return nil, err
	}
	if !met {
		unmet := &types.ConditionalCheckFailedException{}
		if in.ReturnValuesOnConditionCheckFailure == types.ReturnValuesOnConditionCheckFailureAllOld {
			unmet.Item = p.item.attributes()
		}
		return nil, unmet
	}
	set, err := p.set(*in.UpdateExpression, values)
	if err != nil {
		return nil, err
	}
	if p.item == nil {
		p.item = numbers{}
	}
	maps.Copy(p.item, set)
	out := &dynamodb.UpdateItemOutput{}
	if in.ReturnValues == types.ReturnValueUpdatedNew {
		out.Attributes = set.attributes()
	}
	return out, nil
}

// meets evaluates a condition: alternatives (OR) of terms that all hold (AND).
func (p *paper) meets(condition string, values numbers) (bool, error) {
	met := false
	for alternative := range strings.SplitSeq(condition, " OR ") {
		all := true
		for term := range strings.SplitSeq(alternative, " AND ") {
			holds, err := p.holds(term, values)
			if err != nil {
				return false, err
			}
			all = all && holds
		}
		met = met || all
	}
	return met, nil
}

// holds evaluates one term. A comparison with an attribute that is not there is
// false.
func (p *paper) holds(term string, values numbers) (bool, error) {
	if name, ok := strings.CutPrefix(term, "attribute_not_exists("); ok {
		return p.item[strings.TrimSuffix(name, ")")] == nil, nil
	}
	word := strings.Fields(term)
	signs := map[string][]int{"<": {-1}, "<=": {-1, 0}, "=": {0}, ">=": {0, 1}, ">": {1}}
	if len(word) != 3 || signs[word[1]] == nil || values[word[2]] == nil {
		return false, fmt.Errorf("condition %q is not understood", term)
	}
	left := p.item[word[0]]
	return left != nil && slices.Contains(signs[word[1]], left.Cmp(values[word[2]])), nil
}

// set evaluates an update: sums of attributes, as they were, and values.
func (p *paper) set(update string, values numbers) (numbers, error) {
	assignments, ok := strings.CutPrefix(update, "SET ")
	if !ok {
		return nil, fmt.Errorf("update %q is not understood", update)
	}
	result := numbers{}
	for assignment := range strings.SplitSeq(assignments, ",") {
		name, terms, _ := strings.Cut(assignment, "=")
		sum := new(big.Int)
		for term := range strings.SplitSeq(terms, "+") {
			operand := values[strings.TrimSpace(term)]
			if operand == nil {
				operand = p.item[strings.TrimSpace(term)]
			}
			if operand == nil {
				return nil, fmt.Errorf("operand %q is not there", term)
			}
			sum.Add(sum, operand)
		}
		result[strings.TrimSpace(name)] = sum
	}
	return result, nil
}

// attributes is the item as DynamoDB hands it out.
func (n numbers) attributes() map[string]types.AttributeValue {
	if n == nil {
		return nil
	}
	item := map[string]types.AttributeValue{}
	for name, value := range n {
		item[name] = &types.AttributeValueMemberN{Value: value.String()}
	}
	return item
}
