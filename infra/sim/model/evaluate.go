package model

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// at returns the value at a path, nil if there is none.
func (p path) at(i Item) types.AttributeValue {
	v := i[p[0]]
	for _, name := range p[1:] {
		m, ok := v.(*types.AttributeValueMemberM)
		if !ok {
			return nil
		}
		v = m.Value[name]
	}
	return v
}

// valueIn returns the value of an operand for the item, nil if there is none.
func (n *node) valueIn(i Item) types.AttributeValue {
	if n.operator == "value" {
		return n.value.AttributeValue
	}
	return n.path.at(i)
}

// holds reports whether the condition holds for the item. No condition always does.
func (n *node) holds(i Item) bool {
	if n == nil {
		return true
	}
	switch n.operator {
	case "AND":
		return n.operands[0].holds(i) && n.operands[1].holds(i)
	case "OR":
		return n.operands[0].holds(i) || n.operands[1].holds(i)
	case "NOT":
		return !n.operands[0].holds(i)
	}
	left := n.operands[0].valueIn(i)
	var others []types.AttributeValue
	for _, o := range n.operands[1:] {
		others = append(others, o.valueIn(i))
	}
	switch n.operator {
	case "attribute_exists":
		return left != nil
	case "attribute_not_exists":
		return left == nil
	case "begins_with":
		return beginsWith(left, others[0])
	case "=":
		return equal(left, others[0])
	case "<>":
		return !equal(left, others[0])
	case "IN":
		return slices.ContainsFunc(others, func(o types.AttributeValue) bool { return equal(left, o) })
	case "BETWEEN":
		return ordered(left, ">=", others[0]) && ordered(left, "<=", others[1])
	}
	return ordered(left, n.operator, others[0])
}

func ordered(a types.AttributeValue, operator string, b types.AttributeValue) bool {
	order, ok := compare(a, b)
	switch operator {
	case "<":
		return ok && order < 0
	case "<=":
		return ok && order <= 0
	case ">":
		return ok && order > 0
	}
	return ok && order >= 0
}

func beginsWith(v, prefix types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		p, same := prefix.(*types.AttributeValueMemberS)
		return same && strings.HasPrefix(v.Value, p.Value)
	case *types.AttributeValueMemberB:
		p, same := prefix.(*types.AttributeValueMemberB)
		return same && strings.HasPrefix(string(v.Value), string(p.Value))
	}
	return false
}

// project returns the parts of the item at the paths. Without paths it is the item.
func project(i Item, paths []path) Item {
	if paths == nil || i == nil {
		return i
	}
	out := Item{}
	for _, p := range paths {
		if v := p.at(i); v != nil {
			place(out, p, v)
		}
	}
	return out
}

// place puts a value at a path into an item that shares no map with another.
func place(i Item, p path, v types.AttributeValue) {
	for ; len(p) > 1; p = p[1:] {
		m, ok := i[p[0]].(*types.AttributeValueMemberM)
		if !ok {
			m = &types.AttributeValueMemberM{Value: Item{}}
			i[p[0]] = m
		}
		i = m.Value
	}
	i[p[0]] = v
}

// apply returns the item after the actions. Each sees the item as it was before.
func apply(actions []action, old Item) (Item, error) {
	out := maps.Clone(old)
	for _, a := range actions {
		var v types.AttributeValue
		var err error
		if a.set != nil {
			v, err = a.set.assigned(old)
		}
		if err != nil {
			return nil, err
		}
		if err := change(out, a.path, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// change sets the value at a path, or removes it if v is nil. It copies the maps on the
// way. Each must exist.
func change(i Item, p path, v types.AttributeValue) error {
	for ; len(p) > 1; p = p[1:] {
		m, ok := i[p[0]].(*types.AttributeValueMemberM)
		if !ok {
			return invalid("The document path provided in the update expression is invalid for update")
		}
		inner := maps.Clone(m.Value)
		i[p[0]] = &types.AttributeValueMemberM{Value: inner}
		i = inner
	}
	if v == nil {
		delete(i, p[0])
	} else {
		i[p[0]] = v
	}
	return nil
}

// assigned returns the value that SET assigns.
func (n *node) assigned(old Item) (types.AttributeValue, error) {
	switch n.operator {
	case "if_not_exists":
		if v := n.operands[0].valueIn(old); v != nil {
			return v, nil
		}
		return n.operands[1].assigned(old)
	case "+", "-":
		return n.sum(old)
	}
	v := n.valueIn(old)
	if v == nil {
		return nil, invalid("The provided expression refers to an attribute that does not exist in the item")
	}
	return v, nil
}

func (n *node) sum(old Item) (types.AttributeValue, error) {
	total := new(big.Rat)
	for i, o := range n.operands {
		v, err := o.assigned(old)
		if err != nil {
			return nil, err
		}
		number, ok := v.(*types.AttributeValueMemberN)
		if !ok {
			return nil, invalid("An operand in the update expression has an incorrect data type")
		}
		if i == 1 && n.operator == "-" {
			total.Sub(total, rational(number))
		} else {
			total.Add(total, rational(number))
		}
	}
	text, err := format(total)
	return &types.AttributeValueMemberN{Value: text}, err
}
