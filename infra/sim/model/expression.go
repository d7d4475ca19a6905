package model

import (
	_ "embed"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// reserved are DynamoDB's reserved words: ReservedWords.html of its developer guide.
//
//go:embed reserved.txt
var reservedList string

var reserved = strings.Fields(reservedList)

// placeholders are the names and values for all expressions in a request.
type placeholders struct {
	names      map[string]string
	values     Item
	used       map[string]bool
	expression bool // there is one
}

// check refuses placeholders that no expression uses. It comes after the expressions.
func (p *placeholders) check() error {
	for member, keys := range map[string][]string{
		"ExpressionAttributeNames": slices.Collect(maps.Keys(p.names)), "ExpressionAttributeValues": slices.Collect(maps.Keys(p.values)),
	} {
		unused := slices.DeleteFunc(keys, func(key string) bool { return p.used[key] })
		if len(unused) > 0 {
			return invalid("Value provided in %s unused in expressions: keys: {%s}", member, strings.Join(unused, ", "))
		}
	}
	if !p.expression && (p.names != nil || p.values != nil) || p.names != nil && len(p.names) == 0 || p.values != nil && len(p.values) == 0 {
		return invalid("ExpressionAttributeNames and ExpressionAttributeValues must not be empty, and need an expression")
	}
	return nil
}

// path is a document path: an attribute and members of maps in it.
type path []string

// node is an expression. Its operator is "path", "value", a comparator, AND, OR, NOT,
// IN, "+" or a function.
type node struct {
	operator string
	operands []*node
	path     path
	value    types.AttributeValue
}

// parser reads one expression by recursive descent: the parts of DynamoDB's grammar that
// the product uses. It refuses every other one. Its methods panic with the *Error that
// parse returns.
type parser struct {
	*placeholders

	kind   string // such as ConditionExpression
	tokens []string
}

var token = regexp.MustCompile(`[#:]?\w+|<>|<=|>=|\S`)

// parse reads a whole expression. Without a text there is none.
func parse[V any](kind string, text *string, p *placeholders, read func(*parser) V) (result V, err error) {
	if text == nil {
		return result, nil
	}
	p.expression = true
	r := &parser{p, kind, token.FindAllString(*text, -1)}
	defer func() {
		if failure := recover(); failure != nil {
			err = failure.(*Error) //nolint:errcheck,forcetypeassert // any other panic is a defect
		}
	}()
	result = read(r)
	if len(r.tokens) > 0 {
		r.unexpected()
	}
	return result, nil
}

func (r *parser) fail(format string, args ...any) {
	panic(invalid("Invalid %s: %s", r.kind, fmt.Sprintf(format, args...)))
}

// unexpected fails at the next token.
func (r *parser) unexpected() { r.fail("Syntax error; token: %q", r.next()) }

// next returns the next token, "" at the end.
func (r *parser) next() string {
	if len(r.tokens) == 0 {
		return ""
	}
	return r.tokens[0]
}

// accept reads the token if it is the next one. Keywords are in upper or lower case.
func (r *parser) accept(token string) bool {
	if !strings.EqualFold(r.next(), token) {
		return false
	}
	r.tokens = r.tokens[1:]
	return true
}

func (r *parser) expect(token string) {
	if !r.accept(token) {
		r.unexpected()
	}
}

// list reads one or more, with commas between them.
func list[V any](r *parser, one func() V) []V {
	all := []V{one()}
	for r.accept(",") {
		all = append(all, one())
	}
	return all
}

// condition reads a key condition, a filter or the condition of a write.
func (r *parser) condition() *node {
	n := r.and()
	for r.accept("OR") {
		n = &node{operator: "OR", operands: []*node{n, r.and()}}
	}
	return n
}

func (r *parser) and() *node {
	n := r.not()
	for r.accept("AND") {
		n = &node{operator: "AND", operands: []*node{n, r.not()}}
	}
	return n
}

func (r *parser) not() *node {
	if r.accept("NOT") {
		return &node{operator: "NOT", operands: []*node{r.not()}}
	}
	if !r.accept("(") {
		return r.comparison()
	}
	n := r.condition()
	r.expect(")")
	return n
}

// comparison reads a comparison or a function that is a condition by itself.
func (r *parser) comparison() *node {
	left := r.operand("attribute_exists", "attribute_not_exists", "begins_with")
	if left.operator != "path" && left.operator != "value" {
		return left
	}
	n := &node{operator: strings.ToUpper(r.next()), operands: []*node{left}}
	switch n.operator {
	case "=", "<>", "<", "<=", ">", ">=":
		r.expect(n.operator)
		n.operands = append(n.operands, r.operand())
	case "IN":
		r.expect("IN")
		r.expect("(")
		n.operands = append(n.operands, list(r, func() *node { return r.operand() })...)
		r.expect(")")
	default:
		r.unexpected()
	}
	if n.operator[0] == '<' && n.operator != "<>" || n.operator[0] == '>' {
		r.requireType(n.operator, n.operands[1], "S", "N")
	}
	return n
}

// requireType refuses a value if its type is not one of these.
func (r *parser) requireType(operator string, operand *node, wanted ...string) {
	if got := typeOf(operand.value); operand.operator == "value" && !slices.Contains(wanted, got) {
		r.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, got)
	}
}

// operand reads a path, a value, or one of these functions.
func (r *parser) operand(functions ...string) *node {
	name := r.next()
	if strings.HasPrefix(name, ":") {
		v, ok := r.values[name]
		if !ok {
			r.fail("An expression attribute value used in expression is not defined; attribute value: %s", name)
		}
		r.used[name] = true
		r.expect(name)
		return &node{operator: "value", value: v}
	}
	if !slices.Contains(functions, name) {
		return &node{operator: "path", path: r.path()}
	}
	r.expect(name)
	r.expect("(")
	n := &node{operator: name, operands: []*node{{operator: "path", path: r.path()}}}
	if name == "begins_with" || name == "if_not_exists" {
		r.expect(",")
		n.operands = append(n.operands, r.operand())
	}
	r.expect(")")
	if name == "begins_with" {
		r.requireType(name, n.operands[1], "S")
	}
	return n
}

var isName = regexp.MustCompile(`^[A-Za-z]\w*$`)

// path reads a document path.
func (r *parser) path() (p path) {
	for {
		name := r.next()
		if strings.HasPrefix(name, "#") {
			attribute, ok := r.names[name]
			if !ok {
				r.fail("An expression attribute name used in the document path is not defined; attribute name: %s", name)
			}
			r.used[name] = true
			p = append(p, attribute)
		} else {
			if !isName.MatchString(name) {
				r.unexpected()
			}
			if slices.Contains(reserved, strings.ToUpper(name)) {
				r.fail("Attribute name is a reserved keyword; reserved keyword: %s", name)
			}
			p = append(p, name)
		}
		r.expect(name)
		if !r.accept(".") {
			return p
		}
	}
}

// projection reads the paths of a projection.
func (r *parser) projection() []path { return list(r, r.path) }

// action is one path of an update. Without a value it is removed.
type action struct {
	path path
	set  *node
}

// update reads an update expression: a section SET, a section REMOVE, or both.
func (r *parser) update() (actions []action) {
	if r.accept("SET") {
		actions = list(r, r.assignment)
	}
	if len(actions) == 0 || len(r.tokens) > 0 {
		r.expect("REMOVE")
		actions = append(actions, list(r, func() action { return action{path: r.path()} })...)
	}
	return actions
}

func pathsOf(actions []action) (paths []path) {
	for _, a := range actions {
		paths = append(paths, a.path)
	}
	return paths
}

// assignment reads an action of SET.
func (r *parser) assignment() action {
	a := action{path: r.path()}
	r.expect("=")
	a.set = r.operand("if_not_exists")
	if r.accept("+") {
		a.set = &node{operator: "+", operands: []*node{a.set, r.operand("if_not_exists")}}
	}
	return a
}

// at returns the value at a path, nil if there is none.
func (p path) at(i Item) types.AttributeValue {
	for ; len(p) > 1; p = p[1:] {
		m, ok := i[p[0]].(*types.AttributeValueMemberM)
		if !ok {
			return nil
		}
		i = m.Value
	}
	return i[p[0]]
}

// valueIn returns the value of an operand for the item, nil if there is none.
func (n *node) valueIn(i Item) types.AttributeValue {
	if n.operator == "value" {
		return n.value
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
	switch n.operator {
	case "attribute_exists":
		return left != nil
	case "attribute_not_exists":
		return left == nil
	case "IN":
		return slices.ContainsFunc(n.operands[1:], func(o *node) bool { return equal(left, o.valueIn(i)) })
	}
	right := n.operands[1].valueIn(i)
	order, ordered := compare(left, right)
	switch n.operator {
	case "begins_with":
		return typeOf(left) == "S" && typeOf(right) == "S" && strings.HasPrefix(textOf(left), textOf(right))
	case "=":
		return equal(left, right)
	case "<>":
		return !equal(left, right)
	case "<":
		return ordered && order < 0
	case "<=":
		return ordered && order <= 0
	case ">":
		return ordered && order > 0
	}
	return ordered && order >= 0
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
		if a.set != nil {
			var err error
			if v, err = a.set.assigned(old); err != nil {
				return nil, err
			}
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
	case "+":
		return n.sum(old)
	}
	v := n.valueIn(old)
	if v == nil {
		return nil, invalid("The provided expression refers to an attribute that does not exist in the item")
	}
	return v, nil
}

func (n *node) sum(old Item) (types.AttributeValue, error) {
	total := new(big.Int)
	for _, o := range n.operands {
		v, err := o.assigned(old)
		if err != nil {
			return nil, err
		}
		number, ok := v.(*types.AttributeValueMemberN)
		if !ok {
			return nil, invalid("An operand in the update expression has an incorrect data type")
		}
		total.Add(total, integer(number))
	}
	sum := &types.AttributeValueMemberN{Value: total.String()}
	return sum, check(sum)
}
